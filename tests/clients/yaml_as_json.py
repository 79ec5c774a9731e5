"""Prints a YAML file as JSON: `yaml_as_json.py FILE`."""

import json
import sys

import yaml

with open(sys.argv[1]) as file:
    json.dump(yaml.safe_load(file), sys.stdout)
