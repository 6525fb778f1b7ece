// Draws the charts in the colours of the page, again when those change, and for the printer.
"use strict";
(() => {
  const FONT_SIZE = 13;
  const PRINTED_WIDTH = 825; // pixels between the margins of an A4 page, zoomed to 80 %
  const figures = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll("[data-chart]")];
  const config = { displayModeBar: false, displaylogo: false, responsive: true };

  function draw(width) {
    const css = getComputedStyle(document.documentElement);
    const text = css.getPropertyValue("--text").trim();
    for (const place of places) {
      const { data, layout } = figures[Number(place.dataset.chart)];
      const clear = "rgba(0, 0, 0, 0)";
      const font = { family: css.fontFamily, size: FONT_SIZE, color: text, ...layout.font };
      const legend = { itemwidth: 50, ...layout.legend }; // wide enough for a dash to be told
      const colours = { paper_bgcolor: clear, plot_bgcolor: clear, font, legend };
      Plotly.react(place, data, { ...layout, ...colours, width, autosize: !width }, config);
    }
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
    document.documentElement.classList.add("printed");
    draw(PRINTED_WIDTH);
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    document.documentElement.classList.remove("printed");
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  draw();
})();
