/** Tells the other tabs of this browser what changed here. */

const channel = new BroadcastChannel("fermata");

/** `id`: the conversation; null for the list alone. */
export function tellTabs(id: string | null): void {
  channel.postMessage({ changed: id });
}

export function onTabChange(listener: (id: string | null) => void): void {
  channel.addEventListener("message", ({ data }: MessageEvent<{ changed: string | null }>) =>
    listener(data.changed),
  );
}
