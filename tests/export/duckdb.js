// SPDX-License-Identifier: GPL-2.0-or-later
// Runs SQL statements in one DuckDB, as its command line does: duckdb.js STATEMENT... Rows are printed with tabs.
"use strict";

const { DuckDBInstance } = require("@duckdb/node-api");

async function main() {
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();

    for (const statement of process.argv.slice(2)) {
        const result = await connection.runAndReadAll(statement);

        console.log(`# ${result.currentRowCount}`);
        for (const row of result.getRows())
            console.log(row.map(String).join("\t"));
    }
}

main().catch((error) => {
    console.error(String(error));
    process.exit(1);
});
