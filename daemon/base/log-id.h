/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * MESSAGE_ID= of the events that matter to whoever runs the host. systemd/xentraced.catalog
 * explains each: what it means for the data, and what to do. `journalctl -x` shows that, and
 * `journalctl MESSAGE_ID=...` finds them. An ID never changes its meaning. tests/catalog.sh
 * compares this list with the catalog.
 */

#define LOG_ID_RECORDS_LOST        "abda56d7e95343e982a2f854d08f22aa"
#define LOG_ID_RECORDS_DROPPED     "8b0316f654444dc1a673519960f5e846"
#define LOG_ID_OUTPUT_WAITING      "f5488c72593743558779a18c59639a1e"
#define LOG_ID_OUTPUT_ANSWERS      "315716eb08d94bb9be07efe6ab09e5ff"
#define LOG_ID_RESERVE             "89cb98b594d74a8abc1350ae832bd782"
#define LOG_ID_SPACE_AGAIN         "b03678e9ee0f40d3adbe6aef9d891da2"
#define LOG_ID_TRIGGER             "c3c784192c3b4e389952f23df0982278"
#define LOG_ID_SNAPSHOT            "7ffee00dd41c4213bcaf4fa6185e1170"
#define LOG_ID_SNAPSHOT_FAILED     "7ae411672e884968a140a7440808912a"
#define LOG_ID_RECORDER_STOPPED    "971ef81395594c8197090be103207b36"
#define LOG_ID_SESSION_NOT_STARTED "2a70a8418c63413bab6a4df6741e2bb7"
#define LOG_ID_SESSION_ENDED_EARLY "bac01695b9084746890938c2e42398f3"
#define LOG_ID_BUFFER_SET_ASIDE    "5a048ffa919c4439925d75e5b5d05917"
#define LOG_ID_CPUS_SILENT         "eec19ac6200247f49212cfadc08e9885"
#define LOG_ID_POOL_REFUSED        "fa01f7ebe6a24f2c896e5d2d2f32eee7"
#define LOG_ID_COLLECTOR_FAILED    "a976c7abb74846eba49ca842b2216f00"
