"""Checks dashboards against Grafana's published schema: `schema.py FILE...` prints {file: [what is wrong, ...]} as JSON.

The schema is that of `grafana-foundation-sdk`, whose classes Grafana Labs generates from the definitions that Grafana itself is
built from: dashboards, panels, their options, and queries to Prometheus. A key that a class does not have is wrong, and so is a
value that its annotation does not allow.
"""

import enum
import json
import sys
import types
import typing

from grafana_foundation_sdk.models import bargauge, common, dashboard, prometheus, stat, table, timeseries

OPTIONS = {"stat": stat.Options, "bargauge": bargauge.Options, "table": table.Options, "timeseries": timeseries.Options}
CUSTOM = {"table": table.FieldConfig, "timeseries": timeseries.FieldConfig}

# What an override may set, where it is not a field of `custom`.
PROPERTIES = {
    "color": dashboard.FieldColor,
    "decimals": float,
    "displayName": str,
    "links": list[dashboard.DashboardLink],
    "mappings": list[dashboard.ValueMap | dashboard.SpecialValueMap],
    "noValue": str,
    "thresholds": dashboard.ThresholdsConfig,
    "unit": str,
}

# Keys that the plugin of Prometheus has of its own on annotations.
OF_THE_PLUGIN = {"AnnotationQuery": {"titleFormat", "textFormat", "tagKeys", "useValueForTime"}}

# The schema has no class for what the plugin of PostgreSQL asks: these are all of its keys that we use.
SQL_QUERY = {"refId", "datasource", "editorMode", "rawQuery", "rawSql", "format"}


class Check:
    def __init__(self):
        self.wrong = []
        self.values = 0

    def say(self, path, what):
        self.wrong.append(f"{path}: {what}")

    def value(self, value, wanted, path):
        """Whether a value is what an annotation wants."""
        self.values += 1
        origin = typing.get_origin(wanted)
        if wanted in (object, typing.Any):
            return
        if origin in (typing.Union, types.UnionType):
            return self.one_of(value, typing.get_args(wanted), path)
        if origin is typing.Literal:
            if value not in typing.get_args(wanted):
                self.say(path, f"{value!r} is none of {typing.get_args(wanted)}")
        elif origin is list:
            if not isinstance(value, list):
                return self.say(path, "is no list")
            for place, item in enumerate(value):
                self.value(item, typing.get_args(wanted)[0], f"{path}[{place}]")
        elif origin is dict:
            if not isinstance(value, dict):
                return self.say(path, "is no object")
            for key, item in value.items():
                self.value(item, typing.get_args(wanted)[1], f"{path}.{key}")
        elif isinstance(wanted, type) and issubclass(wanted, enum.Enum):
            if value not in [member.value for member in wanted]:
                self.say(path, f"{value!r} is no {wanted.__name__}")
        elif wanted in (str, int, float, bool):
            fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
            if not fits or (wanted is not bool and isinstance(value, bool)):
                self.say(path, f"{value!r} is no {wanted.__name__}")
        elif isinstance(wanted, type):
            self.object(value, wanted, path)
        else:
            self.say(path, f"cannot be checked: {wanted}")

    def one_of(self, value, choices, path):
        """A value that may be of several kinds is wrong when it is of none; then the last says why."""
        if value is None and type(None) in choices:
            return
        for choice in choices:
            if choice is type(None):
                continue
            attempt = Check()
            attempt.value(value, choice, path)
            self.values += attempt.values
            if not attempt.wrong:
                return
        self.wrong += attempt.wrong

    def object(self, value, wanted, path):
        """Whether an object has only fields of a class, each of the right kind."""
        if not isinstance(value, dict):
            return self.say(path, f"{value!r} is no {wanted.__name__}")
        if wanted is dashboard.Panel or wanted is dashboard.RowPanel:
            return self.panel(value, path)
        self.fields(value, wanted, path, OF_THE_PLUGIN.get(wanted.__name__, set()))

    def fields(self, value, wanted, path, besides=frozenset()):
        hints = {camel(name): hint for name, hint in typing.get_type_hints(wanted).items()}
        for key, item in value.items():
            if key in hints:
                self.value(item, hints[key], f"{path}.{key}")
            elif key not in besides:
                self.say(path, f"a {wanted.__name__} has no '{key}'")

    def panel(self, panel, path):
        kind, path = panel.get("type"), f"{path} '{panel.get('title')}'"
        if kind == "row":
            return self.fields(panel, dashboard.RowPanel, path)
        if kind not in OPTIONS:
            return self.say(path, f"a panel of the unknown type {kind}")
        self.fields({key: item for key, item in panel.items() if key not in ("targets", "options")}, dashboard.Panel, path)
        self.object(panel["options"], OPTIONS[kind], f"{path}.options")
        custom = panel["fieldConfig"]["defaults"].get("custom")
        if custom is not None:
            self.object(custom, CUSTOM[kind], f"{path}.custom")
        for override in panel["fieldConfig"]["overrides"]:
            for setting in override["properties"]:
                self.override(setting, kind, f"{path}.{override['matcher']['options']}")
        for target in panel["targets"]:
            self.target(target, f"{path}.{target.get('refId')}")

    def override(self, setting, kind, path):
        name = setting["id"]
        if name in PROPERTIES:
            self.value(setting["value"], PROPERTIES[name], f"{path}.{name}")
        elif name.startswith("custom.") and kind in CUSTOM:
            self.object({name.removeprefix("custom."): setting["value"]}, CUSTOM[kind], path)
        else:
            self.say(path, f"nothing is called '{name}'")

    def target(self, target, path):
        if target["datasource"]["type"] == "prometheus":
            return self.object(target, prometheus.Dataquery, path)
        for key in target.keys() ^ SQL_QUERY:
            self.say(path, f"'{key}' should" + (" not be there" if key in target else " be there"))


def camel(name):
    """The JSON key of an attribute."""
    first, *rest = name.removesuffix("_val").split("_")
    return first + "".join(word.capitalize() for word in rest)


def main():
    found, values = {}, 0
    for file in sys.argv[1:]:
        check = Check()
        with open(file) as text:
            check.object(json.load(text), dashboard.Dashboard, "")
        found[file] = check.wrong
        values += check.values
    json.dump({"wrong": found, "values": values}, sys.stdout)


main()
