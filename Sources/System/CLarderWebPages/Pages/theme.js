// Sets the chosen theme, or the system's, before anything is drawn.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Without storage the system's theme is used.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
