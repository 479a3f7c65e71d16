# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures as Markdown, for people, and as JSON."""

import json
import statistics


def number(value):
    """Three digits that mean something."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{2 if abs(value) >= 1 else 3}f}"


def figure(values):
    """The median, and from where to where the runs were."""
    if not values:
        return ""
    middle = number(statistics.median(values))
    low, high = number(min(values)), number(max(values))
    return middle if low == high else f"{middle} ({low}-{high})"


def cells(line):
    xentrace, xentraced = (line.get(program, []) for program in ("xentrace", "xentraced"))
    ratio = ""
    if xentrace and xentraced and statistics.median(xentrace) > 0:
        ratio = number(statistics.median(xentraced) / statistics.median(xentrace))
    of_bound = ""
    if xentraced and line["bound_value"]:
        of_bound = number(statistics.median(xentraced) / line["bound_value"])
    return [line["case"], line["unit"], figure(xentrace), figure(xentraced), ratio, line["target"],
            "yes" if line["reached"] else "**no**", line["bound"], of_bound]


HEAD = ["", "", "xentrace", "xentraced", "ratio", "to reach", "reached", "bound, in this run",
        "xentraced to it"]


def markdown_rows(rows):
    for title, lines in rows:
        yield f"### {title}\n"
        yield "| " + " | ".join(HEAD) + " |"
        yield "|" + "---|" * len(HEAD)
        for line in lines:
            yield "| " + " | ".join(cells(line)) + " |"
        yield ""


def markdown(document):
    head = [f"- {name}: {value}" for name, value in document["machine"].items()]
    rows = [(row["title"], row["lines"]) for row in document["rows"]]
    return "\n".join([*head, "", *markdown_rows(rows)])


def write(document, markdown_file, json_file):
    with open(json_file, "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
        f.write("\n")
    with open(markdown_file, "w", encoding="utf-8") as f:
        f.write(markdown(document))
