// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tables: numbers are to the right; a long one shows its first rows until it is asked for more. On a narrow screen,
// each row of one with many columns is a block of lines, which has all cells (page.css).

const ROWS_SHOWN = 15, MANY_COLUMNS = 5;

// COLUMNS: [heading, isNumber]. ROWS: arrays of texts, or of elements.
function makeTable(columns, rows, caption) {
    const head = element("tr", {}, ...columns.map(
        ([text, isNumber]) => element("th", {scope: "col", class: isNumber ? "number" : null}, text)));
    const body = element("tbody", {}, ...rows.map((row, i) => element(
        "tr", {class: i >= ROWS_SHOWN ? "more" : null},
        ...row.map((cell, k) => element("td", {class: columns[k][1] ? "number" : null, "data-column": columns[k][0]}, cell)))));
    const table = element("table", {class: columns.length >= MANY_COLUMNS ? "wide" : null}, caption ? element("caption", {}, caption) : null,
                          element("thead", {}, head), body);
    const box = element("div", {class: "table"}, table);
    if (rows.length > ROWS_SHOWN) {
        const button = element("button", {type: "button"}, `All ${formatCount(rows.length)} rows`);
        button.addEventListener("click", () => {
            box.classList.add("all");
            button.remove();
        });
        box.append(button);
    }
    return box;
}

// A bar in a cell, for a part from 0 to 1, with its text.
function barCell(part, text) {
    const fill = element("i");
    fill.style.width = Math.min(part, 1) * 100 + "%";
    return element("span", {class: "bar"}, element("span", {class: "track"}, fill), element("span", {}, text));
}
