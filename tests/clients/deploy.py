"""Prints YAML files as JSON: for each of them the list of its documents.

With --kubernetes, each document is also held against the schema of its kind, strictly; kinds that Kubernetes itself does not
have are left out. What does not fit ends the script with a sentence.
"""

import json
import sys

import kubernetes_validate
import yaml

VERSION = "1.37"


def fits(document, file):
    try:
        kubernetes_validate.validate(document, VERSION, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        return
    except kubernetes_validate.ValidationError as error:
        place = ".".join(str(step) for step in error.path)
        sys.exit(f"{file}: {document['kind']}: {place}: {error.message}")


def main(arguments):
    is_kubernetes = "--kubernetes" in arguments
    files = {}
    for file in (argument for argument in arguments if not argument.startswith("--")):
        with open(file, encoding="utf-8") as text:
            files[file] = list(yaml.safe_load_all(text))
        if is_kubernetes:
            for document in files[file]:
                fits(document, file)
    json.dump(files, sys.stdout)


main(sys.argv[1:])
