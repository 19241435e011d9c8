// The bar at the top: where one is, the zoom, what waits, the feed, and the token.

import { button, el, say } from "./dom.js";

export class Nav {
  /** `acts` has `home()`, `attention()`, and `token(text)`. */
  constructor(host, zoom, acts) {
    this.crumb = el("span", { class: "crumb", "aria-current": "page" });
    this.machine = el("code", { class: "machine", title: "Machine" });
    this.attention = button("", () => acts.attention(), { class: "badge attention", hidden: true });
    this.feed = el("span", { class: "feed", role: "status" });
    this.badge = el("span", { class: "badge token", id: "token-state", role: "status" });
    const input = el("input", {
      type: "password",
      id: "token",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "Instance token",
      "aria-describedby": "token-state",
    });
    const form = el(
      "form",
      {
        class: "token-form",
        on: {
          submit: (event) => {
            event.preventDefault();
            give();
          },
        },
      },
      el("label", { for: "token", class: "unseen" }, "Instance token"),
      input,
      this.badge,
    );
    // Enter tells a field that it changed once more when it is left.
    input.addEventListener("change", () => input.value.trim() !== this.given && give());
    const give = () => {
      this.given = input.value.trim();
      acts.token(this.given);
    };
    this.given = "";
    this.input = input;
    const home = el(
      "a",
      {
        href: "/",
        class: "root",
        on: {
          click: (event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey) return;
            event.preventDefault();
            acts.home();
          },
        },
      },
      el("img", { src: "/assets/icon.svg", alt: "", width: "20", height: "20" }),
      "jr2",
    );
    this.separator = el("span", { class: "separator", "aria-hidden": "true" }, "/");
    host.replaceChildren(
      el("nav", { class: "breadcrumb", "aria-label": "Breadcrumb" }, home, this.separator, this.crumb, this.machine),
      zoom,
      el("span", { class: "space" }),
      this.attention,
      this.feed,
      form,
    );
    this.zoom = zoom;
  }

  /** Show `{workflow, machine, gates, feed, token}`. */
  draw({ workflow, machine, gates, feed, token }) {
    say(this.crumb, workflow ?? "");
    this.separator.hidden = this.crumb.hidden = !workflow;
    say(this.machine, machine ?? "");
    this.machine.hidden = !machine;
    this.zoom.hidden = !machine;
    this.attention.hidden = token !== "live" || gates === 0;
    say(this.attention, `⚑ ${gates}`);
    this.attention.setAttribute("aria-label", `${gates} open ${gates === 1 ? "Gate needs" : "Gates need"} attention`);
    say(this.feed, feed);
    this.feed.dataset.state = feed;
    say(this.badge, token);
    this.badge.dataset.state = token;
    document.title = workflow ? `${workflow} · jr2 Console` : "jr2 Console";
  }

  /** The token that was typed opens nothing any more. */
  clear() {
    this.input.value = this.given = "";
  }
}
