// Before the first paint: the theme that this person chose, else the system's.
(function () {
  let theme = null;
  try { theme = localStorage.getItem("stockyard.theme"); } catch { /* storage may be switched off */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
