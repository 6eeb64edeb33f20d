// Buttons that copy the privacy label and what is promised as text. Pages that are opened as files may have no clipboard.
"use strict";
for (const section of document.querySelectorAll("#label, #privacy")) {
  const button = document.createElement("button"), told = document.createElement("span"), home = document.createElement("p");
  const title = section.querySelector("h2"), said = (node) => node.textContent.replace(/\s+/g, " ").trim();

  function line(node) {
    if (node.matches("dt")) return `${said(node)}:${node.nextElementSibling.querySelector("li") ? "" : ` ${said(node.nextElementSibling)}`}`;
    if (node.matches("tr")) return [...node.children].map(said).join("\t");
    return `${node.matches("h2, h3, summary") ? "\n" : node.matches("li") ? "- " : ""}${said(node)}`;
  }
  const text = () => [...section.querySelectorAll("h2, h3, summary, p, li, dt, caption, tr")]
    .filter((node) => !node.closest(".copy, .sign")).map(line).join("\n").trim();

  function byEvent() {
    document.addEventListener("copy", (event) => { event.clipboardData.setData("text/plain", text()); event.preventDefault(); }, { once: true });
    return document.execCommand("copy");
  }
  button.type = "button";
  button.textContent = "Copy as text";
  button.setAttribute("aria-label", `Copy as text: ${said(title)}`);
  told.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    told.textContent = "";
    const done = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    told.textContent = done || byEvent() ? "Copied." : "Not copied: select the text and copy it.";
  });
  home.className = "copy";
  home.append(button, " ", told);
  title.after(home);
}
