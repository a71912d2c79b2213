// Makes the page one to explore. Everything it draws is in the element "data" (tasks/report/explore.py); nothing is fetched.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PLACE = document.createElement("div"); // where the pointer's words stand
  PLACE.className = "tip";
  document.documentElement.classList.add("js");
  document.body.append(PLACE);

  // Elements: make("b", {class: "soft"}, "text", child), and the same in SVG.
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    element.append(...children.flat().filter((child) => child != null));
    return element;
  }
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const colour = (k) => `var(--c${k % 10})`;
  const whole = (n) => n.toLocaleString("en");
  const number = (value) => (value == null ? "–" : value.toFixed(4));
  const choice = (label, names, chosen, onchange) =>
    make("label", {}, label + " ", make("select", { onchange: (event) => onchange(+event.target.value) },
      names.map((name, k) => make("option", { value: k, selected: k === chosen }, name))));
  const button = (text, onclick) => make("button", { type: "button", onclick }, text);

  function tell(event, text) {
    PLACE.textContent = text;
    PLACE.style.display = text ? "block" : "none";
    if (!text) return;
    const { pageX: x, pageY: y } = event, right = scrollX + document.documentElement.clientWidth;
    PLACE.style.left = `${Math.max(4, Math.min(x + 12, right - PLACE.offsetWidth - 8))}px`;
    PLACE.style.top = `${y + 14}px`;
  }

  // Words as people sort them, and what a cell's label sets by its value: learning_rate=0.025 before 0.1.
  function inWords(a, b) {
    const [one, other] = [a, b].map((text) => text.split(/=(-?\d[\d.]*(?:e[-+]?\d+)?)(?=[,;\s]|$)/));
    for (let k = 0; k < Math.min(one.length, other.length); k++) {
      const order = k % 2 ? one[k] - other[k] : one[k].localeCompare(other[k], undefined, { numeric: true });
      if (order) return order;
    }
    return one.length - other.length;
  }

  // Tables: a click on a heading sorts, numbers by value, highest first, and what is none last.
  function sortable(table) {
    const [head, ...rows] = table.rows;
    if (rows.length < 2 || !head.querySelector("th") || rows.some((row) => row.cells.length !== head.cells.length)) return;
    [...head.cells].forEach((heading, column) => {
      const sort = () => {
        const falls = heading.hasAttribute("aria-sort") ? heading.getAttribute("aria-sort") !== "descending" : column > 0;
        for (const other of head.cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
        const text = (row) => row.cells[column].textContent.trim();
        const value = (row) => (text(row).startsWith("∞") ? Infinity : parseFloat(text(row).replace(/,/g, "")));
        const words = (row) => Number.isNaN(value(row)) && !["", "–"].includes(text(row));
        const counts = column > 0 && !rows.some((row) => words(row) || row.cells[column].matches(".text, :has(code)"));
        const compare = (a, b) => {
          if (!counts) return inWords(text(a), text(b)) * (falls ? -1 : 1);
          const [x, y] = [value(a), value(b)];
          if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
          return (x - y || 0) * (falls ? -1 : 1);
        };
        head.after(...rows.toSorted(compare));
      };
      fill(heading, { tabindex: 0, title: "sort", onclick: sort, onkeydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), sort()) }, []);
      heading.classList.add("sorts");
    });
  }

  // Columns of the table of rankers come and go with a click on their measure.
  function columns() {
    const table = document.getElementById("standings");
    if (data.measures.length < 2) return;
    const pressed = (event, k) => {
      const shown = event.target.getAttribute("aria-pressed") !== "true";
      event.target.setAttribute("aria-pressed", shown);
      for (const row of table.rows) row.cells[k + 1].hidden = !shown;
    };
    const chips = data.measures.map(({ title }, k) =>
      make("button", { type: "button", "aria-pressed": "true", onclick: (event) => pressed(event, k) }, title));
    table.parentElement.before(make("p", { class: "tools" }, "Measures ", chips));
  }

  // Axes of a plot of the given size: a scale a side, ticks at round numbers, and lines to read along.
  function scale([low, high], from, to) {
    if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
    const place = (value) => from + ((value - low) / (high - low)) * (to - from);
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    place.ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
      place.ticks.push([k * step, (k * step).toFixed(digits)]);
    return place;
  }
  function span(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const v of values) if (v != null) [low, high] = [Math.min(low, v), Math.max(high, v)];
    return low <= high ? [low, high] : [0, 1];
  }
  const frame = (width, height) => ({ viewBox: `0 0 ${width} ${height}`, width, height, class: "plot", role: "img" });
  const wide = (section) => Math.min(1040, Math.max(320, section.clientWidth));
  function axes(width, height, xs, ys, xlabel, ylabel) {
    const [left, top, right, bottom] = [54, 10, width - 10, height - 42];
    const x = scale(xs, left, right), y = scale(ys, bottom, top);
    const plot = draw("svg", { ...frame(width, height), "aria-label": `${ylabel} against ${xlabel}` },
      x.ticks.map(([v, text]) => draw("text", { x: x(v), y: bottom + 16, "text-anchor": "middle" }, text)),
      y.ticks.map(([v, text]) => [
        draw("line", { x1: left, x2: right, y1: y(v), y2: y(v), class: "grid" }),
        draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, text)]).flat(),
      draw("path", { d: `M${left} ${top}V${bottom}H${right}`, class: "axis" }),
      draw("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, xlabel),
      draw("text", { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, ylabel));
    return { plot, x, y };
  }
  const through = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  // The nearest mark within `reach` of the pointer, in the plot's own units.
  function nearest(plot, event, marks, reach) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
    let best = null, least = reach * reach;
    for (const mark of marks) {
      const distance = (mark.x - at.x) ** 2 + (mark.y - at.y) ** 2;
      if (distance < least) [best, least] = [mark, distance];
    }
    return best;
  }

  // Queries: one ranker against another, and how both order the documents of a query.
  function queries(section) {
    const told = data.queries, rankings = new Map(data.rankings.map((one) => [one.query, one]));
    const place = told.at ?? told.names.map((_, k) => k), beside = new Set(told.beside);
    const other = data.rankers.findIndex((_, k) => k !== data.best);
    const state = { measure: data.measure, a: other, b: data.best, query: null };
    const body = make("div");
    const set = (key) => (k) => { state[key] = k; show(); };
    function show() {
      const { title, fewer } = data.measures[state.measure];
      const [own, theirs] = [told.values[state.a][state.measure], told.values[state.b][state.measure]];
      const ends = span([...own, ...theirs]);
      const { plot, x, y } = axes(460, 440, ends, ends, `${data.rankers[state.a]}, ${title}`, data.rankers[state.b]);
      const marks = place.map((query, k) => ({ query, name: told.names[k], a: own[k], b: theirs[k] }))
        .filter(({ a, b }) => a != null && b != null);
      for (const mark of marks) [mark.x, mark.y, mark.gain] = [x(mark.a), y(mark.b), (mark.b - mark.a) * (fewer ? -1 : 1)];
      plot.append(draw("path", { d: `M${x(ends[0])} ${y(ends[0])}L${x(ends[1])} ${y(ends[1])}`, class: "axis dashed" }),
        ...marks.map((mark) => draw("circle", { cx: mark.x, cy: mark.y, r: 3,
          class: (rankings.has(mark.query) ? "known " : "") + (mark.query === state.query ? "picked" : ""),
          fill: mark.gain > 0 ? "var(--good)" : mark.gain < 0 ? "var(--bad)" : "var(--soft)" })));
      const words = ({ name, a, b }) => `${name}: ${data.rankers[state.a]} ${number(a)}, ${data.rankers[state.b]} ${number(b)}`;
      plot.addEventListener("pointermove", (event) => { const mark = nearest(plot, event, marks, 14); tell(event, mark && words(mark)); });
      plot.addEventListener("pointerleave", (event) => tell(event, ""));
      plot.addEventListener("click", (event) => { const mark = nearest(plot, event, marks, 14); if (mark) set("query")(mark.query); });
      const counted = marks.filter(({ query }) => !beside.has(query));
      const count = (sign) => whole(counted.filter(({ gain }) => Math.sign(gain) === sign).length);
      const listed = (sign) => marks.filter((mark) => Math.sign(mark.gain) === sign)
        .sort((a, b) => sign * (b.gain - a.gain)).slice(0, 6)
        .map(({ query, name, a, b }) => button([make("bdi", {}, [...name].slice(0, 40).join("")), ` ${b > a ? "+" : ""}${(b - a).toFixed(3)}`], () => set("query")(query)));
      const picked = marks.find((mark) => mark.query === state.query);
      const some = told.at ? ` of ${whole(told.n)}, evenly sampled` : "";
      body.replaceChildren(
        make("div", { class: "plots" }, make("figure", {}, plot),
          make("figure", {},
            make("p", {}, `${data.rankers[state.b]} is better on ${count(1)}, worse on ${count(-1)} and equal on ${count(0)} of ` +
              `${whole(counted.length)} queries${some}.`),
            make("div", { class: "tools" }, make("p", {}, "Most harmed ", listed(-1)), make("p", {}, "Most helped ", listed(1))),
            make("p", { class: "soft" }, "Each point is a query; above the line the ranker on the vertical axis is better. Click a ringed point to see its documents; ▲3: three ranks higher than in the other list."),
            picked && make("p", {}, make("b", {}, picked.name), words(picked).slice(picked.name.length)),
            picked && rankings.has(picked.query) ? sideBySide(rankings.get(picked.query)) : null)));
    }
    function sideBySide({ documents, labels, ranks }) {
      const most = Math.max(1, ...labels.map((label) => label ?? 0));
      const top = (ranker) => documents.map((_, k) => k).filter((k) => ranks[ranker][k] <= 10)
        .sort((a, b) => ranks[ranker][a] - ranks[ranker][b]);
      const [left, right] = [top(state.a), top(state.b)];
      const cell = (k, ranker, beside) => {
        if (k == null) return make("td");
        const moved = ranks[beside][k] - ranks[ranker][k];
        return make("td", { class: "document", "data-k": k, style: `--share:${(labels[k] ?? 0) / most}` }, documents[k],
          make("small", {}, ` label ${labels[k] ?? "–"}${moved ? (moved > 0 ? ` ▲${moved}` : ` ▼${-moved}`) : ""}`));
      };
      const table = make("table", { class: "side" },
        make("tr", {}, make("th", {}, "rank"), make("th", {}, data.rankers[state.a]), make("th", {}, data.rankers[state.b])),
        Array.from({ length: Math.max(left.length, right.length) }, (_, k) =>
          make("tr", {}, make("td", {}, k + 1), cell(left[k], state.a, state.b), cell(right[k], state.b, state.a))));
      table.addEventListener("pointerover", (event) => {
        const k = event.target.closest("td")?.dataset.k;
        for (const each of table.querySelectorAll("td")) each.classList.toggle("same", k != null && each.dataset.k === k);
      });
      return make("div", { class: "scroll" }, table);
    }
    const [names, titles] = [data.rankers, data.measures.map(({ title }) => title)];
    section.append(make("p", { class: "tools" }, choice("Across", names, state.a, set("a")), choice(" up", names, state.b, set("b")),
      choice(" measure", titles, state.measure, set("measure"))), body);
    const [own, theirs] = [told.values[state.a][state.measure], told.values[state.b][state.measure]];
    const known = place.map((query, k) => [query, (theirs[k] - own[k]) * (data.measures[state.measure].fewer ? -1 : 1)])
      .filter(([query]) => rankings.has(query));
    state.query = known.sort((a, b) => a[1] - b[1])[0]?.[0] ?? null; // the one that the best ranker harms most
    show();
  }

  // Curves of all cells in one plot, shown and hidden by their boxes.
  function curves(section) {
    const measures = [...new Set(data.curves.map(({ measure }) => measure))];
    const state = { measure: 0, shown: new Set(data.curves.filter(({ cell }) => data.cells[cell].chosen)), train: true, valid: true };
    const body = make("div");
    const own = () => data.curves.filter(({ measure }) => measure === measures[state.measure]);
    const set = (key) => (value) => { state[key] = value; show(); };
    const box = (label, checked, onchange, look) => make("label", { class: "box", style: look },
      make("input", { type: "checkbox", checked, onchange: (event) => onchange(event.target.checked) }), label);
    function show() {
      const shown = own().filter((curve) => state.shown.has(curve));
      const splits = ["train", "valid"].filter((split) => state[split]);
      const [x0, y0] = [0, 1].map((k) => span(shown.flatMap((curve) => splits.flatMap((split) => curve[split].map((point) => point[k])))));
      const { plot, x, y } = axes(wide(section), 360, x0, y0, "iteration", measures[state.measure]);
      const marks = [];
      for (const curve of shown) for (const split of splits) {
        const [points, cell] = [curve[split], data.cells[curve.cell]];
        const alone = points.length === 1; // what does not go on iteration by iteration
        const d = through(points.map(([at, value]) => [x(at), y(value)])) + (alone ? "h0" : "");
        const line = draw("path", { class: alone ? `${split} point` : split, stroke: colour(cell.ranker), d });
        plot.append(line);
        const on = `${cell.label}, ${split === "train" ? "training" : "validation"}`;
        for (const [at, value] of points) marks.push({ x: x(at), y: y(value), line, text: `${on}, iteration ${at}: ${number(value)}` });
      }
      plot.addEventListener("pointermove", (event) => {
        const mark = nearest(plot, event, marks, 30);
        for (const line of plot.querySelectorAll("path.train, path.valid")) line.classList.toggle("over", line === mark?.line);
        tell(event, mark && mark.text);
      });
      plot.addEventListener("pointerleave", (event) => tell(event, ""));
      body.replaceChildren(make("figure", {}, plot), make("div", { class: "boxes tools" },
        own().toSorted((a, b) => data.cells[b.cell].chosen - data.cells[a.cell].chosen).map((curve) => {
          const { label, ranker } = data.cells[curve.cell];
          const turn = (on) => { state.shown[on ? "add" : "delete"](curve); show(); };
          return box(label, state.shown.has(curve), turn, `--own:${colour(ranker)}`);
        })),
        make("p", { class: "soft legend" }, [...new Set(shown.map(({ cell }) => data.cells[cell].ranker))]
          .map((k) => make("span", { style: `--own:${colour(k)}` }, data.rankers[k]))));
    }
    const those = (keep) => () => { state.shown = new Set(data.curves.filter(keep)); show(); };
    section.append(make("p", { class: "tools" }, measures.length > 1 ? choice("Measure", measures, 0, set("measure")) : null,
      box("training, drawn through", true, set("train")), box("validation, dashed", true, set("valid")),
      " Cells ", button("chosen", those(({ cell }) => data.cells[cell].chosen)), button("all", those(() => true)), button("none", those(() => false))), body);
    show();
  }

  // The sweep as parallel coordinates: an axis a parameter, a line a cell, the darker the better.
  function sweep(section) {
    const cellsOf = (ranker) => data.cells.filter((cell) => cell.ranker === ranker && Object.keys(cell.point).length);
    const swept = data.rankers.map((_, k) => k).filter((k) => cellsOf(k).length > 1);
    if (!swept.length) return;
    const state = { ranker: swept[0], measure: data.measure };
    const body = make("div");
    const set = (key) => (value) => { state[key] = value; show(); };
    const text = (value) => (value === null ? "none" : typeof value !== "number" || Number.isInteger(value) ? `${value}` : `${+value.toPrecision(4)}`);
    function axis(values) {
      const given = values.filter((value) => value !== undefined);
      const distinct = [...new Set(given)];
      if (distinct.length && distinct.every((value) => typeof value === "number")) {
        const [low, high] = span(distinct), log = low > 0 && high / low > 20;
        const f = log ? Math.log : (v) => v;
        const place = (value) => (high > low ? (f(value) - f(low)) / (f(high) - f(low)) : 0.5);
        const marks = distinct.length <= 8 ? distinct : [low, high];
        return { place, marks };
      }
      return { place: (value) => (distinct.length > 1 ? distinct.indexOf(value) / (distinct.length - 1) : 0.5), marks: distinct };
    }
    function show() {
      const cells = cellsOf(state.ranker);
      const { title, fewer } = data.measures[state.measure];
      const paths = [...new Set(cells.flatMap((cell) => Object.keys(cell.point)))];
      const all = [...paths.map((path) => ({ name: path, of: (cell) => cell.point[path] })),
        { name: `${title}, validation`, of: (cell) => cell.valid[state.measure] ?? undefined },
        { name: `${title}, test`, of: (cell) => cell.test[state.measure] ?? undefined }];
      const half = all.map(({ name }) => 3.9 * name.length); // of a name's width: names stand side by side
      const apart = Math.max(80, ...half.slice(1).map((own, k) => own + half[k]));
      const left = Math.max(70, half[0]), right = Math.max(100, half.at(-1));
      const [width, height] = [Math.max(wide(section), left + right + apart * (all.length - 1)), 320];
      const gap = (width - left - right) / Math.max(1, all.length - 1), y = (share) => height - 24 - share * (height - 70);
      const drawn = all.map((one, k) => ({ ...one, ...axis(cells.map(one.of)), x: left + k * gap }));
      const named = { class: "plot coordinates", "aria-label": `cells of ${data.rankers[state.ranker]}` };
      const plot = draw("svg", { ...frame(width, height), ...named });
      const [by, marks] = [drawn[drawn.length - 2], []];
      const worth = (cell) => { const value = by.of(cell); return value === undefined ? 0 : fewer ? 1 - by.place(value) : by.place(value); };
      for (const cell of cells.toSorted((a, b) => worth(a) - worth(b))) {
        // A line breaks where the cell has no value of an axis: a parameter that only others have.
        const points = drawn.map((one) => one.of(cell) !== undefined && [one.x, y(one.place(one.of(cell)))]);
        const d = points.map((point, k) => point && (points[k - 1] ? `L${point.join(" ")}` : `M${point.join(" ")}h0`)).filter(Boolean).join("");
        const line = draw("path", { d, class: cell.chosen ? "cell chosen" : "cell", style: `--share:${worth(cell).toFixed(3)}` });
        plot.append(line);
        const words = `${cell.label}${cell.chosen ? ", chosen" : ""}: validation ${number(cell.valid[state.measure])}, test ${number(cell.test[state.measure])}`;
        for (let k = 0; k < points.length - 1; k++) for (let share = 0; points[k] && points[k + 1] && share <= 1; share += 0.1)
          marks.push({ x: points[k][0] + share * (points[k + 1][0] - points[k][0]), y: points[k][1] + share * (points[k + 1][1] - points[k][1]),
            line, text: words, cell });
      }
      for (const one of drawn) plot.append(draw("line", { x1: one.x, x2: one.x, y1: y(0), y2: y(1), class: "axis" }),
        draw("text", { x: one.x, y: 16, "text-anchor": "middle", class: "name" }, one.name),
        ...one.marks.map((value) => draw("text", { x: one.x + 6, y: y(one.place(value)) + 4 }, text(value))));
      plot.addEventListener("pointermove", (event) => {
        const mark = nearest(plot, event, marks, 16);
        for (const line of plot.querySelectorAll(".cell")) line.classList.toggle("over", line === mark?.line);
        tell(event, mark && mark.text);
        const over = mark && String(mark.cell.row);
        for (const row of document.getElementById("cells").rows) row.classList.toggle("same", row.dataset.cell === over);
      });
      plot.addEventListener("pointerleave", (event) => tell(event, ""));
      body.replaceChildren(make("div", { class: "scroll" }, plot));
    }
    section.append(make("p", { class: "tools" }, swept.length > 1 ? choice("Ranker", swept.map((k) => data.rankers[k]), 0, (k) => set("ranker")(swept[k])) : null,
      choice(" Measure", data.measures.map(({ title }) => title), state.measure, set("measure"))), body,
      make("p", { class: "soft" }, "A line is a cell, the darker the better on validation queries; thick: chosen."));
    show();
  }

  columns();
  document.querySelectorAll("table").forEach(sortable);
  const into = (id, build) => document.getElementById(id) && build(document.getElementById(id));
  if (data.queries && data.rankers.length > 1) into("queries", queries);
  if (data.curves.length) into("curves", curves);
  into("sweep", sweep);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
