// The box for a request: Ctrl+Enter sends it, pasted images are attached, and what is attached is named.

export function composers() {
  for (const form of document.querySelectorAll("form.composer")) compose(form);
}

function compose(form) {
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) form.requestSubmit();
  });
  form.addEventListener("paste", (event) => {
    const files = form.elements.images, pasted = [...event.clipboardData.files].filter((one) => one.type.startsWith("image/"));
    if (!files || !pasted.length) return;
    const all = new DataTransfer();
    for (const one of [...files.files, ...pasted]) all.items.add(one);
    files.files = all.files;
    named(files);
  });
  form.addEventListener("change", (event) => { if (event.target.type === "file") named(event.target); });
}

function named(files) {
  const label = files.closest("label").querySelector("span");
  label.dataset.words ??= label.textContent;
  label.textContent = files.files.length ? files.dataset.words.replace("{count}", files.files.length) : label.dataset.words;
  files.closest("label").title = [...files.files].map((one) => one.name).join(", ");
}
