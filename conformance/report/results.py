"""Reads files of results and puts those of one plugin together."""

import json
import os
from dataclasses import dataclass

GOOD = ("passed", "unsupported", "not applicable")  # any other outcome is a failure or no result
_KINDS = {"ltc-conformance": ("checks", "tiers"), "ltc-sweep": ("operators", "database", "choices"), "ltc-models": ("models", "list")}


class Unusable(Exception):
    """A file that holds no results, or results that belong to no plugin among the others."""


@dataclass
class Plugin:
    """The facts about one plugin: a run of ltc-conformance and, where given, of PyTorch's operators and of the models."""

    label: str  # unique among the plugins that were read together
    result: dict
    sweep: dict | None = None
    models: dict | None = None

    @property
    def title(self):
        plugin = self.result["plugin"]
        return " ".join(filter(None, (self.label, plugin["version"], f"on {plugin['device']}" if plugin["device"] else "")))

    def checks(self, tier=None):
        """The results, one for each name."""
        return [check for check in {check["name"]: check for check in self.result["checks"]}.values() if tier in (None, check["tier"])]

    def not_run(self):
        """Tiers of the suite with how many of their checks have no result."""
        missing = {tier: numbers["checks"] - len(self.checks(tier)) for tier, numbers in self.result["tiers"].items()}
        return {tier: count for tier, count in missing.items() if count > 0}


def _load(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except ValueError:
        raise Unusable(f"{path}: no JSON; did the run end?") from None
    keys = _KINDS.get(data.get("suite")) if isinstance(data, dict) else None
    if keys is None or any(key not in data for key in ("plugin", "host", "abi", *keys)):
        raise Unusable(f"{path}: no results of {', '.join(_KINDS)}")
    return data


def _subject(data):
    """Results belong together if plugin, device and host are the same builds."""
    plugin = {key: value for key, value in data["plugin"].items() if key != "path"}
    return json.dumps([plugin, data["host"], data["abi"]], sort_keys=True)


def read(paths):
    """A Plugin for each result of ltc-conformance, in the order of the paths. Raises Unusable, with the path."""
    loaded = [(path, _load(path)) for path in paths]
    results = [(path, data) for path, data in loaded if data["suite"] == "ltc-conformance"]
    names = [data["plugin"]["name"] for _, data in results]
    plugins = []
    for path, data in results:
        name, stem = data["plugin"]["name"], os.path.splitext(os.path.basename(path))[0]
        label = f"{name} ({stem})" if names.count(name) > 1 else name
        plugins.append(Plugin(label if label not in {plugin.label for plugin in plugins} else f"{name} ({path})", data))
    for path, data in loaded:
        if data["suite"] == "ltc-conformance":
            continue
        owners = [plugin for plugin in plugins if _subject(plugin.result) == _subject(data)]
        if not owners:
            raise Unusable(f"{path}: of {data['plugin']['name']} {data['plugin']['version']}, but there is no result of ltc-conformance "
                           "for the same builds of plugin and host")
        for plugin in owners:
            setattr(plugin, data["suite"].removeprefix("ltc-"), data)
    return plugins
