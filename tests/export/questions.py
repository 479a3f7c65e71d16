# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions about a trace in SQL, and their answers by `report --json`.

Each has the statement for ClickHouse and for DuckDB, where the tables are what `export` writes for them, and a function
that finds the answer in the measures: rows, whose order does not matter. An answer is compared as text."""

IDLE = 32767


class Question:
    def __init__(self, name, answer, sql, clickhouse=None, duckdb=None):
        self.name, self.answer = name, answer
        self.clickhouse, self.duckdb = clickhouse or sql, duckdb or sql


def domid(name):
    return name[1:]


def vcpu(name):
    return tuple(name[1:].split("v"))


def of_domains(measures):
    return [(domid(name), of) for name, of in measures["domains"].items()]


def run_time(measures):
    return [(domain, of["cycles"]["running"]) for domain, of in of_domains(measures) if of["cycles"]["running"]]


def waits(measures):
    return [(domain, of["latency"]["count"], of["latency"]["total"], of["latency"]["max"])
            for domain, of in of_domains(measures) if of["latency"]["count"]]


def wakes(measures):
    return [(domain, of["wakes"]) for domain, of in of_domains(measures) if of["wakes"]]


def percentiles(measures):
    return [(domain, of["latency"]["p99"]) for domain, of in of_domains(measures) if of["latency"]["count"]]


def of_cpus(measures):
    return [(cpu, of["busy"], of["idle"]) for cpu, of in measures["cpus"].items() if of["busy"] + of["idle"]]


def exits(measures):
    return [(*vcpu(name), int(reason, 0), of["count"], of["cycles"])
            for name, reasons in measures["exits"]["vcpus"].items() if name != "unknown"
            for reason, of in reasons.items()]


def interrupts(measures):
    return [(cpu, irq, of["count"]) for cpu, irqs in measures["interrupts"]["cpus"].items()
            for irq, of in irqs.items()]


def c_states(measures):
    return [(cpu, state, of["count"], of["cycles"]) for cpu, states in measures["power"]["c_states"].items()
            for state, of in states.items()]


def losses(measures):
    of_cpu = {}
    for loss in measures["lost"]["list"]:
        records, gaps = of_cpu.get(loss["cpu"], (0, 0))
        of_cpu[loss["cpu"]] = records + loss["count"], gaps + 1
    return [(cpu, *of) for cpu, of in of_cpu.items()]


def events(measures):
    return [(event, count) for event, count in (
        (int(event, 0), count) for event, count in measures["events"].items()) if event != 0x1f002]  # has no time


def of_vcpus(key):
    return lambda measures: [(*vcpu(name), of[key]) for name, of in measures["vcpus"].items() if of[key]]


# Where the records say of whom they are.
CLICKHOUSE_VCPU = "field.value[indexOf(field.name, 'vcpu')]"
CLICKHOUSE_IDS = "intDiv(v, 65536), v % 65536"
DUCKDB_VCPU = "json_extract_string(fields, '$.vcpu')"
DUCKDB_IDS = "regexp_extract(v, 'd(.*)v', 1), regexp_extract(v, 'v(.*)', 1)"
SHOWN = "name LIKE 'running_to_%' OR name LIKE '%_to_running' OR name = 'continue_running'"

QUESTIONS = (
    Question("How long did each domain run?", run_time,
             "SELECT domain, sum(cycles) FROM intervals WHERE kind = 'running' AND domain < 32767 GROUP BY domain"),
    Question("How often and how long did each domain wait for a CPU, and how long at most?", waits,
             "SELECT domain, count(*), sum(cycles), max(cycles) FROM intervals "
             "WHERE wait != '' AND next = 'running' GROUP BY domain"),
    Question("How often was each domain woken?", wakes,
             "SELECT domain, count(*) FROM intervals WHERE wait = 'wake' AND next = 'running' GROUP BY domain"),
    Question("How long did a domain wait in 99 of 100 cases?", percentiles, None,
             "SELECT domain, arraySort(groupArray(cycles))[intDiv(count(*) * 99 + 99, 100)] FROM intervals "
             "WHERE wait != '' AND next = 'running' GROUP BY domain",
             "SELECT domain, list_sort(list(cycles))[(count(*) * 99 + 99) // 100] FROM intervals "
             "WHERE wait != '' AND next = 'running' GROUP BY domain"),
    Question("How long was each CPU busy, and idle?", of_cpus,
             "SELECT cpu, sum(CASE WHEN domain != 32767 THEN cycles ELSE 0 END), "
             "sum(CASE WHEN domain = 32767 THEN cycles ELSE 0 END) FROM intervals WHERE kind = 'running' GROUP BY cpu"),
    Question("Why did vCPUs leave their guests, how often, and how long did it take?", exits,
             "SELECT domain, vcpu, value, count(*), sum(cycles) FROM intervals WHERE kind = 'exit' "
             "GROUP BY domain, vcpu, value"),
    Question("Which interrupts did the CPUs handle?", interrupts,
             "SELECT cpu, value, count(*) FROM intervals WHERE kind = 'irq' GROUP BY cpu, value"),
    Question("How long were the CPUs in which idle state?", c_states,
             "SELECT cpu, value, count(*), sum(cycles) FROM intervals WHERE kind = 'c_state' AND complete = 1 "
             "GROUP BY cpu, value"),
    Question("How many records are lost, and in how many gaps?", losses,
             "SELECT cpu, sum(value), count(*) FROM intervals WHERE kind = 'lost' GROUP BY cpu"),
    Question("How many records has each event?", events, None,
             "SELECT event, count(*) FROM records GROUP BY event",
             "SELECT event::UINTEGER, count(*) FROM records GROUP BY event"),
    Question("How often did each vCPU begin to run?", of_vcpus("switches_in"), None,
             "SELECT %s, count(*) FROM (SELECT %s AS v FROM records WHERE name LIKE '%%_to_running') GROUP BY v" % (
                 CLICKHOUSE_IDS, CLICKHOUSE_VCPU),
             "SELECT %s, count(*) FROM (SELECT %s AS v FROM records WHERE name LIKE '%%_to_running') GROUP BY v" % (
                 DUCKDB_IDS, DUCKDB_VCPU)),
    Question("How often did each vCPU migrate?", of_vcpus("migrations"), None,
             "SELECT %s, arraySum(arrayMap((a, b) -> a != b, arrayPopFront(cpus), arrayPopBack(cpus))) AS times FROM "
             "(SELECT v, groupArray(cpu) AS cpus FROM "
             "(SELECT %s AS v, cpu FROM records WHERE %s ORDER BY tsc, cpu) GROUP BY v) WHERE times > 0" % (
                 CLICKHOUSE_IDS, CLICKHOUSE_VCPU, SHOWN),
             "SELECT %s, count(*) FROM (SELECT v, cpu, lag(cpu) OVER (PARTITION BY v ORDER BY tsc, cpu) AS before FROM "
             "(SELECT %s AS v, cpu, tsc FROM records WHERE %s)) WHERE cpu != before GROUP BY v" % (
                 DUCKDB_IDS, DUCKDB_VCPU, SHOWN)),
)


def expected(question, measures):
    return sorted(tuple(map(str, row)) for row in question.answer(measures))
