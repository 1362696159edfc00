// Around textual-serve's terminal: its socket's address, the keyboard, and what is said when the socket closes.
"use strict";

const TERMINAL = "/static/js/textual.js";
const LEFT = 1000; // the console was left
const TRY_LATER = 1013; // too many tabs
const OVER = [1002, 1011, TRY_LATER]; // what trying again would not mend by itself
const RETRY_MS = 2000;

const terminal = document.getElementById("terminal");

// A link in what a job wrote opens nothing, and neither does the console.
window.open = () => null;

function type() {
  document.querySelector(".xterm-helper-textarea")?.focus();
}

function tell(words, again) {
  document.getElementById("words").textContent = words;
  document.getElementById("again").hidden = !again;
  document.getElementById("news").hidden = false;
  if (again) document.getElementById("again").focus();
}

async function comeBack() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    try {
      await fetch("/", { redirect: "manual", cache: "no-store" });
    } catch {
      continue;
    }
    location.reload();
    return;
  }
}

function closed(event) {
  if (event.code === LEFT) tell("You left the console.", true);
  else if (OVER.includes(event.code)) tell(`sexton: ${event.reason}.`, true);
  else {
    tell(`The connection ended${event.reason ? ` (${event.reason})` : ""}; trying again.`, false);
    comeBack();
  }
}

// The keyboard belongs to the console as soon as it is there: it learns so by a message on the open socket.
class Socket extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("open", () => setTimeout(type));
    this.addEventListener("close", closed);
  }
}

async function start() {
  document.getElementById("again").addEventListener("click", () => location.reload());
  window.addEventListener("focus", type);
  window.WebSocket = Socket;
  const address = new URL("/ws", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  terminal.dataset.sessionWebsocketUrl = address.href;
  const fonts = ["14px", "bold 14px", "italic 14px"].map((font) => document.fonts.load(`${font} "Roboto Mono"`));
  await Promise.allSettled(fonts); // cells are measured once, when the terminal opens
  const script = document.createElement("script");
  script.src = TERMINAL;
  script.onload = () => window.onload(); // it waits for the page, which has been loaded
  document.head.append(script);
}

window.addEventListener("load", start);
