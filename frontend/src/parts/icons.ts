/** Outlines of the icons, on a square of 24. */
export const ICONS = {
  alarm: "M12 4L2.8 20h18.4zM12 10v4M12 17.2v.2",
  back: "M15 6l-6 6l6 6",
  ban: "M12 12m-8 0a8 8 0 1 0 16 0a8 8 0 1 0 -16 0M6.5 6.5l11 11",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M9 6l6 6l-6 6",
  clock: "M12 12m-8.5 0a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0 -17 0M12 7v5l3 2",
  compare: "M8 4v16M16 4v16M4 8h4M16 8h4M4 16h4M16 16h4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  deploy: "M12 3l7 7M12 3L5 10M12 3v13M5 20h14",
  down: "M12 5v13M6 13l6 6l6-6",
  download: "M12 4v11M7 11l5 5l5-5M5 20h14",
  equal: "M5 9c3-3 5 3 8 0s4-1 6 0M5 15c3-3 5 3 8 0s4-1 6 0",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  goal: "M12 3v3M12 18v3M3 12h3M18 12h3M12 12m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
  grip: "M9 6h.1M15 6h.1M9 12h.1M15 12h.1M9 18h.1M15 18h.1",
  hash: "M9 4L7 20M17 4l-2 16M4 9h16M4 15h16",
  home: "M4 11l8-7l8 7v9h-5v-6H9v6H4z",
  info: "M12 12m-9 0a9 9 0 1 0 18 0a9 9 0 1 0 -18 0M12 11v5M12 8v.2",
  keyboard: "M3 7h18v11H3zM7 11h.1M11 11h.1M15 11h.1M18 11h.1M8 15h8",
  link:
    "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
  log: "M4 5h16M4 10h16M4 15h10M4 20h7",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  more: "M6 12h.1M12 12h.1M18 12h.1",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7l-12 7z",
  plus: "M12 5v14M5 12h14",
  search: "M11 11m-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0M20 20l-4.5-4.5",
  stop: "M6 6h12v12H6z",
  sun:
    "M12 12m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21" +
    "M5.6 5.6l1 1M17.4 17.4l1 1M5.6 18.4l1-1M17.4 6.6l1-1",
  swap: "M7 7h12M15 3l4 4l-4 4M17 17H5M9 13l-4 4l4 4",
  text: "M5 6h14M12 6v13",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  trust: "M12 3l7 3v5c0 5-3.2 8.3-7 10c-3.8-1.7-7-5-7-10V6zM9 12l2 2l4-4",
  up: "M12 19V6M6 11l6-6l6 6",
  watch: "M3 12h4l3-7l4 14l3-7h4",
  x: "M6 6l12 12M18 6L6 18",
} as const;

export type IconName = keyof typeof ICONS;
