// Before anything is drawn: the chosen theme, or the system's.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Without storage the system decides.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
