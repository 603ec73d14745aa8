function bestPeer(rows, isBetter) {
  const peers = rows.filter((row) => !row.isFermata);
  return peers.reduce((best, row) => (isBetter(row.median, best.median) ? row : best), peers[0]);
}

/** The arrangement of llama-batched-bench that is through first. */
export function bestArrangement(rows) {
  return bestPeer(rows, (a, b) => a.seconds < b.seconds);
}

/** The setting of llama-server with the most turns a minute. */
export function bestServer(rows) {
  return bestPeer(rows, (a, b) => a.turnsPerMinute > b.turnsPerMinute);
}
