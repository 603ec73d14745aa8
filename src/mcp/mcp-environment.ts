/** Which variables of Fermata's environment an MCP server that it starts gets: none that is meant to hold a secret. */

/** Who and where the user is: the MCP SDK's list. And locale and temp. */
const posixNames = "HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE TMPDIR TEMP TMP";
const windowsNames =
  "APPDATA COMSPEC HOMEDRIVE HOMEPATH LANG LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE " +
  "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE";

/** How a program reaches the network from here, in small letters: certificates, proxies, and where npm, pip and uv get packages. */
const networkNames = new Set([
  "node_extra_ca_certs",
  "node_use_system_ca",
  "node_use_env_proxy",
  "ssl_cert_file",
  "ssl_cert_dir",
  "requests_ca_bundle",
  "curl_ca_bundle",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
  "npm_config_cache",
  "npm_config_cafile",
  "npm_config_globalconfig",
  "npm_config_https_proxy",
  "npm_config_noproxy",
  "npm_config_proxy",
  "npm_config_registry",
  "npm_config_userconfig",
  "pip_cert",
  "pip_config_file",
  "pip_index_url",
  "uv_cache_dir",
  "uv_default_index",
  "uv_index_url",
  "uv_native_tls",
]);

/** An address with a name or password, of a proxy or an index. */
const credentials = /^(?:[a-z][a-z\d+.-]*:)?(?:\/\/)?[^/?#]*@/i;

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
    const isOfNetwork = networkNames.has(name.toLowerCase()) && !credentials.test(value);
    if (isPlain(name) || isOfNetwork) environment[name] = value;
  }
  return Object.assign(environment, configured);
}
