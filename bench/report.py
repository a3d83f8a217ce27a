"""What the runs mean: medians, the ratio to the best peer and its spread, the limit, growth of memory, and whether the
results agree. `runs` are pairs (program, line) in the order in which they ran."""
import statistics

from workloads import PYTHON_WORKLOADS, WORKLOADS

WORKLOADS = WORKLOADS | PYTHON_WORKLOADS
GRADUS = "gradus"


def lines_of(runs, name):
    return [line for program, line in runs if program == name]


def peers_of(runs):
    return list(dict.fromkeys(name for name, _ in runs if name != GRADUS))


def median_of(figure, lines):
    values = [value for value in map(figure.of, lines) if value is not None]
    return statistics.median(values) if values else None


def pairs(runs, peer):
    """Each run of the peer with the run of Gradus right before it."""
    ours = None
    for name, line in runs:
        if name == GRADUS:
            ours = line
        elif name == peer and ours is not None:
            yield ours, line


def pair_ratios(figure, runs, peer):
    values = [(figure.of(ours), figure.of(theirs)) for ours, theirs in pairs(runs, peer)]
    return [ours / theirs for ours, theirs in values if ours is not None and theirs]


def machine_of(machines):
    """The most that was measured of each limit: nothing is faster than a limit."""
    if not machines:
        return None
    return {name: max((m[name] for m in machines if m[name] is not None), default=None) for name in machines[0]}


def growth_of(runs, name):
    values = [line["extra"].get("rss_growth_mb") for line in lines_of(runs, name)]
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def ratio(a, b):
    return a / b if a is not None and b else None


def growth_row(workload, runs):
    """Megabytes that the first call adds; the best peer is the one that adds least."""
    ours = growth_of(runs, GRADUS)
    theirs = {name: growth for name in peers_of(runs) if (growth := growth_of(runs, name)) is not None}
    best = min(theirs, key=theirs.get, default=None)
    return {"gradus": ours, "best_peer": best, "peer": theirs.get(best), "ratio": ratio(ours, theirs.get(best)),
            "goal": WORKLOADS[workload].growth_goal}


def checks(workload, runs, were_given):
    """How far each peer's result is from Gradus's; nothing where they did not compute with the same numbers."""
    check = WORKLOADS[workload].check
    if check is None or not were_given:
        return []
    value_of = lambda name: next((v for line in lines_of(runs, name) if (v := check.value(line)) is not None), None)
    ours = value_of(GRADUS)
    found = []
    for peer in peers_of(runs):
        theirs = value_of(peer)
        if ours is None or theirs is None:
            continue
        difference = check.differs_by(ours, theirs)
        found.append({"what": check.what, "peer": peer, "gradus": ours, "theirs": theirs, "difference": difference,
                      "tolerance": check.tolerance, "agrees": difference <= check.tolerance})  # a nan does not
    return found


def figure_row(workload, figure, runs, machine):
    candidates = {name: value for name in peers_of(runs) if figure.counts(name)
                  if (value := median_of(figure, lines_of(runs, name))) is not None}
    gradus = median_of(figure, lines_of(runs, GRADUS))
    best = min(candidates, key=candidates.get, default=None)
    ratios = pair_ratios(figure, runs, best) if best else []
    limit = WORKLOADS[workload].limit
    least = limit.microseconds(machine) * figure.per_us if limit and machine and figure.per_us else None
    return {"workload": workload, "figure": figure.name, "unit": figure.unit, "gradus": gradus, "peers": candidates,
            "best_peer": best, "ratio": ratio(gradus, candidates.get(best)), "pairs": len(ratios),
            "spread": [min(ratios), max(ratios)] if ratios else None, "goal": figure.goal, "limit": least,
            "of_limit": ratio(gradus, least)}


def summarize(workload, runs, machine=None, were_given=False):
    """One row a figure; growth and checks stand in the first."""
    rows = [figure_row(workload, figure, runs, machine) for figure in WORKLOADS[workload].figures]
    rows[0]["growth"] = growth_row(workload, runs)
    rows[0]["checks"] = checks(workload, runs, were_given)
    return rows


def complaints(rows):
    """Why a run is a failure: a figure that Gradus does not have, or a result that does not agree."""
    for row in rows:
        if row["gradus"] is None:
            yield f"{row['workload']}: Gradus gave no figure for {row['figure']}"
        for check in row.get("checks", []):
            if not check["agrees"]:
                yield (f"{row['workload']}: the {check['what']} is {check['gradus']}, but {check['theirs']} of "
                       f"{check['peer']}: {check['difference']:.1e} apart, at most {check['tolerance']:.0e} allowed")


# ---------------------------------------------------------------- text

def number(value, digits=3):
    """Significant digits without an exponent."""
    if value is None:
        return ""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


def check_text(found):
    if not found:
        return ""
    wrong = [check["peer"] for check in found if not check["agrees"]]
    if wrong:
        return "**differs from " + ", ".join(wrong) + "**"
    return f"agrees with {len(found)} to {max(check['difference'] for check in found):.0e}"


HEADER = ["workload", "Gradus", "best peer", "", "ratio", "of pairs", "goal", "limit", "of the limit", "growth, MB",
          "best peer's", "ratio", "results"]


def cells(row):
    best, spread, growth = row["best_peer"], row["spread"], row.get("growth") or {}
    with_unit = lambda value: f"{number(value)} {row['unit']}" if value is not None else "-"
    reached = row["ratio"] is not None and row["goal"] is not None and row["ratio"] <= row["goal"]
    ratio_text = number(row["ratio"])
    name = row["workload"] if row["figure"] == "step" else f"{row['workload']}, {row['figure']}"
    return [name, with_unit(row["gradus"]), with_unit(row["peers"].get(best)), best or "",
            f"**{ratio_text}**" if reached else ratio_text,
            f"{number(spread[0])}-{number(spread[1])} ({row['pairs']})" if spread else "", number(row["goal"], 2),
            with_unit(row["limit"]) if row["limit"] is not None else "", number(row["of_limit"], 2),
            number(growth.get("gradus")), number(growth.get("peer")), number(growth.get("ratio"), 2),
            check_text(row.get("checks"))]


def markdown_table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def text_table(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                     for line in [header, *rows])


def machine_text(machine):
    if machine is None:
        return "Limits were not measured."
    narrow = machine["bf16_gflops"]
    return (f"Limits measured in the same run: {number(machine['gflops'])} GFLOP/s in f32, "
            + (f"{number(narrow)} in bf16" if narrow else "no instruction for bf16")
            + f"; memory {number(machine['read_gb_s'])} GB/s read, {number(machine['copy_gb_s'])} copied, "
            f"{number(machine['copy_past_caches_gb_s'])} past the caches, {number(machine['in_place_gb_s'])} in place.")


def load_text(others):
    """Of a number of cores; times of a loaded machine are no records, but ratios in turn still count."""
    return f"Other processes kept {number(others, 2)} of the machine's cores busy as the run began."


def others_text(row):
    """The peers that are not the best, fastest first."""
    others = sorted((value, name) for name, value in row["peers"].items() if name != row["best_peer"])
    return ", ".join(f"{name} {number(value)}" for value, name in others)


def markdown(result):
    """The whole report. Growth of memory is that of the first call."""
    about, rows = result["machine"], result["rows"]
    parts = [f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['threads']} threads. "
             + machine_text(result["limits"]) + " " + load_text(about.get("others", 0)),
             markdown_table(HEADER, map(cells, rows))]
    others = [[row["workload"], f"{row['figure']}, {row['unit']}", text] for row in rows if (text := others_text(row))]
    if others:
        parts.append(markdown_table(["workload", "figure", "the other peers"], others))
    if result.get("absent"):
        parts.append("Left out: " + "; ".join(result["absent"]) + ".")
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------- what each pass is worth

def worth(figure, with_all, without):
    """How many times longer it takes without a pass: median, and the spread of the ratios in turn."""
    pairs_found = [(figure.of(a), figure.of(b)) for a, b in zip(with_all, without)]
    ratios = [b / a for a, b in pairs_found if a and b is not None]
    return {"factor": statistics.median(ratios), "spread": [min(ratios), max(ratios)]} if ratios else None


def worth_table(found):
    """found: {workload: {pass: worth}}. One row a pass, one column a workload."""
    passes = list(dict.fromkeys(name for of_workload in found.values() for name in of_workload))

    def cell(value):
        if value is None:
            return ""
        text = f"{value['factor']:.2f} ({value['spread'][0]:.2f}-{value['spread'][1]:.2f})"
        return f"**{text}**" if value["spread"][0] > 1.02 else text
    return markdown_table(["without", *found],
                          [[name, *(cell(of_workload.get(name)) for of_workload in found.values())] for name in passes])
