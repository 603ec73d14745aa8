/** Which variables of Fermata's environment an MCP server that it starts gets: none that is meant to hold a secret. */

/** Who and where the user is: the MCP SDK's list. And locale and temp. */
const posixNames = "HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE TMPDIR TEMP TMP";
const windowsNames =
  "APPDATA COMSPEC HOMEDRIVE HOMEPATH LANG LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE " +
  "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE";

/** How a program reaches the network from here, in small letters: files, folders, hosts and switches. */
const networkNames = new Set([
  "node_extra_ca_certs",
  "node_use_system_ca",
  "node_use_env_proxy",
  "ssl_cert_file",
  "ssl_cert_dir",
  "requests_ca_bundle",
  "curl_ca_bundle",
  "no_proxy",
  "npm_config_cache",
  "npm_config_cafile",
  "npm_config_globalconfig",
  "npm_config_noproxy",
  "npm_config_userconfig",
  "pip_cert",
  "pip_config_file",
  "uv_cache_dir",
  "uv_native_tls",
]);

/** Addresses of proxies, and from where npm, pip and uv get packages. */
const addressNames = new Set([
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "npm_config_https_proxy",
  "npm_config_proxy",
  "npm_config_registry",
  "pip_index_url",
  "uv_default_index",
  "uv_index_url",
]);

/** An address with a password has an `@`, however it is written; a token may be in its query. One in a path is not seen. */
const mayBeSecret = /[@?]/;

/** Those of `own`, then `configured`. */
export function mcpEnvironment(
  own: NodeJS.ProcessEnv,
  configured: Record<string, string>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const names = new Set((isWindows ? windowsNames : posixNames).split(" "));
  const isPlain = (name: string): boolean => {
    const canonical = isWindows ? name.toUpperCase() : name;
    return names.has(canonical) || canonical.startsWith("LC_");
  };
  const environment: Record<string, string> = {};
  for (const [name, value = ""] of Object.entries(own)) {
    const canonical = name.toLowerCase();
    const isAddress = addressNames.has(canonical) && !mayBeSecret.test(value);
    if (isPlain(name) || networkNames.has(canonical) || isAddress) environment[name] = value;
  }
  return Object.assign(environment, configured);
}
