/**
 * Opens a dialog over the page and returns how to close it, for `onMount`.
 *
 * Focus returns to where it was. The browser would see to that only while the dialog is part of the
 * page, which it no longer is when a component ends.
 */
export function openModal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  dialog.showModal();
  dialog.querySelector<HTMLElement>("[data-focus]")?.focus();
  return () => {
    dialog.close();
    if (before instanceof HTMLElement && before.isConnected) {
      before.focus({ preventScroll: true });
    }
  };
}
