// What the page does by itself: follow the thread, count seconds, send on Enter, say that the worker is gone.
(() => {
  const $ = (id) => document.getElementById(id);
  const log = $("messages");
  const nearEnd = () => log && log.scrollHeight - log.scrollTop - log.clientHeight < 160;
  let follow = true;
  // To the end, but to the beginning of a message that is longer than the window.
  const toEnd = () => {
    if (!log || !follow) return;
    const shown = [...log.children].filter((one) => !one.hidden);
    const last = shown[shown.length - 1];
    if (last && last.offsetHeight > log.clientHeight - 40) log.scrollTop = last.offsetTop - log.offsetTop - 12;
    else log.scrollTop = log.scrollHeight;
  };
  if (log) {
    log.addEventListener("scroll", () => { follow = nearEnd(); });
    new ResizeObserver(toEnd).observe(log);
    new MutationObserver(() => { localTimes(); toEnd(); }).observe(log, { childList: true, subtree: true });
  }

  // Times in the reader's own zone.
  function localTimes() {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const words = new Date(time.dateTime).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      if (time.textContent !== words) time.textContent = words;
    }
  }

  // What runs is counted on between two versions of a card.
  function inWords(s) {
    if (s < 10) return `${s.toFixed(1)} s`;
    s = Math.round(s);
    if (s < 60) return `${s} s`;
    const m = Math.floor(s / 60);
    return m < 60 ? `${m} min ${s % 60} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
  }
  setInterval(() => {
    for (const running of document.querySelectorAll("[data-since]")) {
      running.textContent = inWords(Math.max(0, Date.now() / 1000 - Number(running.dataset.since)));
    }
  }, 100);

  // Enter sends, Shift+Enter begins a line.
  const words = $("words");
  if (words) {
    const grow = () => { words.style.height = "auto"; words.style.height = `${Math.min(words.scrollHeight, 180)}px`; };
    words.addEventListener("input", grow);
    words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        words.form.requestSubmit();
      }
    });
    document.addEventListener("htmx:after:request", (event) => {
      const response = event.detail?.ctx?.response;
      if (event.target === words.form && (response?.status ?? 500) < 300) {
        words.value = "";
        htmx.trigger(words, "input");
        follow = true;
        grow();
        toEnd();
      }
    });
    if (matchMedia("(hover: hover)").matches) words.focus({ preventScroll: true });
    words.setSelectionRange(words.value.length, words.value.length);
  }

  // What the words would do may be another thing once the work has moved on.
  let stale = null;
  document.addEventListener("htmx:sse:after:message", () => {
    clearTimeout(stale);
    if (words?.value.trim()) stale = setTimeout(() => htmx.trigger(words, "input"), 300);
  });

  // An edit that was sent closes its form.
  document.addEventListener("submit", (event) => {
    const own = event.target.closest("details.own");
    if (own) setTimeout(() => { own.open = false; }, 50);
  });

  // The worker went away, or is back.
  const away = $("away");
  const gone = (is) => { away.hidden = !is; document.body.classList.toggle("is-away", is); };
  let timer = null;
  document.addEventListener("htmx:sse:before:connection", () => { timer ??= setTimeout(() => gone(true), 250); });
  document.addEventListener("htmx:sse:error", () => gone(true));
  document.addEventListener("htmx:sse:after:connection", () => { clearTimeout(timer); timer = null; gone(false); });
  document.addEventListener("reload", () => location.reload());

  $("theme")?.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });

  localTimes();
  toEnd();
})();
