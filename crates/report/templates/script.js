// Tables sort by the column whose head is pressed. Everything can be read without this script.
(function () {
  "use strict";
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var heads = table.querySelectorAll("thead th");
    var body = table.tBodies[0];
    var original = Array.from(body.rows);
    if (original.length < 2) return;
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var before = head.getAttribute("aria-sort");
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        // up, down, and back to the order in which it was written
        var next = before === "ascending" ? "descending" : before === "descending" ? null : "ascending";
        var rows = original.slice();
        if (next) {
          head.setAttribute("aria-sort", next);
          rows.sort(function (a, b) { return compare(key(a, column), key(b, column), next === "ascending" ? 1 : -1); });
        }
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  function key(row, column) {
    var cell = row.cells[column];
    return cell.dataset.key === undefined ? (cell.tagName === "TH" ? cell.textContent : null) : parseFloat(cell.dataset.key);
  }
  // what is absent stays at the end whichever way
  function compare(a, b, way) {
    if (a === null || b === null) return (a === null) - (b === null);
    return way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  }
})();
