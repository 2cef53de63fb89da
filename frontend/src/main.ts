/**
 * Start of the page: take over the key of the address, then show the workbench.
 *
 * `pastwise workbench` opens `/#key=…`. The key is exchanged once for a cookie that scripts cannot
 * read, and removed from the address before anything else is loaded.
 */

import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./app.css";

import { mount } from "svelte";

import App from "./App.svelte";
import { startAddress } from "./lib/address.svelte";
import { openSession } from "./lib/session.svelte";
import { startTheme } from "./lib/theme.svelte";

startTheme();
await openSession();
startAddress();

const target = document.getElementById("app");
if (target !== null) {
  mount(App, { target });
}
