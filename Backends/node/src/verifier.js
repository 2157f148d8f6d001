// Asks /verify about a request, and turns the answer into an identity or a refusal. Depends on no framework.

import { createHash, randomUUID } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import { Client, parsed, retryAfter } from "./client.js";

const CODE = /^[A-Z0-9_]{1,64}$/;
const DEVICE = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const APP = /^[A-Za-z0-9._-]{1,128}$/;
const ORIGIN = /^(https?):\/\/((?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)$/;
const AUTHORITY = /^[\x21-\x2b\x2d-\x7e]{1,300}$/;
const FIELD = /^[\x20-\x7e]{1,1000}$/;
const SINGLE = ["x-app-id", "x-device-id", "content-digest"];
const DICTIONARIES = ["signature-input", "signature"];
/** The seconds of `Retry-After` if the service sends none. */
const RETRY_AFTER = 5;

export class Verifier {
  #client;
  #headers;
  #origin;
  #networks = new BlockList();
  #trustsUnix;
  #attempts;
  #log;
  bodyLimit;

  constructor({
    service, credential, origin, trustedProxies = [], bodyLimit = 1_048_576, timeout = 2000, attempts = 3, insecureHTTP = false,
    log = console,
  }) {
    if ((origin === undefined) === (trustedProxies.length === 0)) {
      throw new TypeError("name either origin or trustedProxies: the request itself proves neither scheme nor authority");
    }
    if (typeof credential !== "string" || !/^[\x21-\x7e]+$/.test(credential)) {
      throw new TypeError("the credential is empty, or has a character that no credential has");
    }
    const parts = parsed(service);
    if (parts && (parts.pathname !== "/" || parts.search || parts.hash)) {
      throw new TypeError(`expected an origin without a path, found ${JSON.stringify(service)}`);
    }
    if (!(Number.isSafeInteger(bodyLimit) && bodyLimit >= 0 && Number.isSafeInteger(attempts) && attempts >= 1)) {
      throw new TypeError("bodyLimit must not be negative, and attempts must be at least 1");
    }
    if (origin !== undefined) {
      const found = ORIGIN.exec(origin);
      if (!found) throw new TypeError(`expected an origin such as https://api.example.com, found ${JSON.stringify(origin)}`);
      this.#origin = [found[1], found[2]];
    }
    this.#trustsUnix = trustedProxies.includes("unix");
    for (const text of trustedProxies) if (text !== "unix") this.#trust(text);
    this.#client = new Client(service, { timeout, insecureHTTP });
    this.#headers = { Authorization: `Bearer ${credential}`, "Content-Type": "application/json" };
    this.#attempts = attempts;
    this.#log = checked(log);
    this.bodyLimit = bodyLimit;
  }

  #trust(text) {
    const [address, length, ...more] = text.split("/");
    const family = isIP(address);
    const bits = length === undefined ? (family === 4 ? 32 : 128) : Number(length);
    if (!family || more.length || !/^[0-9]{1,3}$/.test(length ?? "0") || bits > (family === 4 ? 32 : 128)) {
      throw new TypeError(`expected a network such as 10.0.0.0/8, found ${JSON.stringify(text)}`);
    }
    this.#networks.addSubnet(address, bits, `ipv${family}`);
  }

  /** Judges a request. Call it once for each request: the service refuses a second call as a replay. */
  async verify({ method, target, headers, body, peer }) {
    const name = randomUUID();
    if (!isFramed(headers, body)) return refused(400, "INVALID_REQUEST", "The body is not framed as the headers say.", name);
    if (body.length > this.bodyLimit) return this.tooLarge();
    const origin = this.#origin ?? this.#forwarded(headers, peer);
    if (!origin) {
      return refused(421, "MISDIRECTED_REQUEST", "The request did not come through a proxy that this backend trusts.", name);
    }
    const asked = Buffer.from(JSON.stringify(question(method, target, headers, body, origin, name)));
    return this.#judge(await this.#ask(asked), headers, name);
  }

  /** The answer to a body beyond the limit. */
  tooLarge() {
    return refused(413, "PAYLOAD_TOO_LARGE", `The body has more than ${this.bodyLimit} bytes.`, randomUUID());
  }

  /** The answer if the request cannot be described to the service. Logs the reason, for the operator. */
  impossible(reason) {
    this.#log.error(`synheart auth: ${reason}`);
    return unavailable(randomUUID());
  }

  /** The scheme and authority that a trusted proxy sent; undefined unless it sent exactly one of each. */
  #forwarded(headers, peer) {
    if (!this.#trusts(peer)) return undefined;
    const schemes = values(headers, "x-forwarded-proto");
    const authorities = values(headers, "x-forwarded-host");
    const areSingle = schemes.length === 1 && authorities.length === 1;
    if (!areSingle || !["http", "https"].includes(schemes[0]) || !AUTHORITY.test(authorities[0])) return undefined;
    return [schemes[0], authorities[0]];
  }

  #trusts(peer) {
    if (peer === undefined || peer === null) return false;
    if (peer === "") return this.#trustsUnix;
    const address = peer.replace(/%.*$/, "").replace(/^::ffff:(?=[0-9.]+$)/i, "");
    const family = isIP(address);
    return family !== 0 && this.#networks.check(address, `ipv${family}`);
  }

  /** The service's answer, undefined if there was none. Retries failures, which the verification id makes safe. */
  async #ask(asked) {
    let answer;
    for (let attempt = 0; attempt < this.#attempts; attempt++) {
      if (attempt > 0) await pause(50 * 2 ** attempt);
      try {
        answer = await this.#client.exchange("POST", "/auth/v1/verify", this.#headers, asked);
      } catch (error) {
        this.#log.warn(`synheart auth: the auth service did not answer: ${error.code ?? error.name}`);
        continue;
      }
      // If the answer has Retry-After, do not retry: the phone would wait too long.
      if (answer.status < 500 || retryAfter(answer) !== undefined) break;
    }
    return answer;
  }

  #judge(answer, headers, name) {
    if (!answer) return unavailable(name);
    const body = object(answer.body);
    const code = isText(body.error, CODE) ? body.error : undefined;
    if (answer.status === 200) {
      const found = passed(body, headers);
      if (found) return found;
    } else if (answer.status >= 400 && answer.status < 500 && answer.status !== 429 && code) {
      if (code === "UNAUTHORIZED" || code === "FORBIDDEN") {
        this.#log.error(
          `synheart auth: the auth service refuses this backend's credential (${code}): see \`synheart-auth credentials list\`, and ` +
            "create one of role service for the app");
        return unavailable(name, 30);
      }
      if (body.verified === false) return relayed(answer, body, code, name);
    }
    if (answer.status !== 429 && answer.status < 500) {
      this.#log.error(
        `synheart auth: the auth service gave no verdict to a question: status ${answer.status}, code ${code}, id ${name}`);
    }
    return unavailable(name, retryAfter(answer));
  }
}

/** Returns the log. Throws if it lacks a function that the library calls. */
export function checked(log) {
  if (typeof log?.warn !== "function" || typeof log.error !== "function") {
    throw new TypeError("log must have the functions warn and error, as console has");
  }
  return log;
}

/** The values of a header, line by line. */
function values(headers, name) {
  return headers.filter(([found]) => found.toLowerCase() === name).map(([, value]) => value.replace(/^[ \t]+|[ \t]+$/g, ""));
}

/** Whether a header is passed on to the service. Cookies and credentials of the client are not. */
function isAskedAbout(name) {
  name = name.toLowerCase();
  return name.startsWith("x-synheart-") ? !isReserved(name) : SINGLE.includes(name) || DICTIONARIES.includes(name);
}

/**
 * Whether a handler could take the header for a verified identity. Every character except letters and digits counts
 * as `-`, because some frameworks change characters such as `_` and `.` to `-`.
 */
export function isReserved(name) {
  name = name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
  return name.startsWith("x-synheart-verified-") || name === "x-synheart-identity";
}

/**
 * The lines of headers that were joined with commas. In a signed request, only `Signature-Input` and `Signature` may contain commas. So a
 * comma in another header means that the header was repeated. The service gets each part as its own line, and refuses the header.
 */
export function separated(headers) {
  return headers.flatMap(([name, value]) =>
    isAskedAbout(name) && !DICTIONARIES.includes(name.toLowerCase()) ? value.split(",").map((part) => [name, part.trim()]) : [[name, value]]);
}

function question(method, target, headers, body, [scheme, authority], name) {
  const mark = target.indexOf("?");
  // Signature scheme 2 signs the digest of the body, so the service does not need the body itself.
  const isTwo = values(headers, "signature-input").length > 0 && values(headers, "x-synheart-sig-version").length === 0;
  return {
    method, scheme, authority, path: mark < 0 ? target : target.slice(0, mark), query: mark < 0 ? null : target.slice(mark + 1),
    headers: headers.filter(([found]) => isAskedAbout(found)), verification_id: name,
    ...(isTwo ? { body_sha256: createHash("sha256").update(body).digest("base64") } : { body: Buffer.from(body).toString("base64") }),
  };
}

/**
 * Whether the headers frame the body unambiguously. If there is a `Content-Length`, it must occur once, be the body's
 * length, and have no `Transfer-Encoding` beside it. Ambiguous framing allows request smuggling.
 */
function isFramed(headers, body) {
  const lengths = values(headers, "content-length");
  if (lengths.length === 0) return true;
  if (lengths.length > 1 || values(headers, "transfer-encoding").length > 0) return false;
  return /^[0-9]{1,15}$/.test(lengths[0]) && Number(lengths[0]) === body.length;
}

/** The JSON object in an answer's body; an empty object if the body is not a JSON object. */
function object(body) {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body ?? new Uint8Array()));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** The verdict in an answer with status 200; undefined if it has none. */
function passed(body, headers) {
  if (body.verified === false && isText(body.observed, CODE)) return { identity: undefined, observed: body.observed };
  if (body.verified !== true || body.observed != null) return undefined;
  const { app_id: appID, device_id: deviceID, platform, assurance, signature_scheme: scheme, key_age_seconds: age } = body;
  const isOurs =
    isText(appID, APP) && isText(deviceID, DEVICE) &&
    // App and device must be those that the request names. Otherwise the answer is about another request.
    String(values(headers, "x-app-id")) === appID && String(values(headers, "x-device-id")) === deviceID &&
    (platform === "ios" || platform === "android") && isAssurance(assurance) &&
    (scheme === 1 || scheme === 2) && Number.isSafeInteger(age) && age >= 0;
  if (!isOurs) return undefined;
  return { identity: { appID, deviceID, platform, assurance, signatureScheme: scheme, keyAgeSeconds: age }, observed: undefined };
}

export function isAssurance(value) {
  return value !== null && typeof value === "object" && typeof value.app === "string" && typeof value.key === "string" &&
    Array.isArray(value.labels) && value.labels.every((label) => typeof label === "string");
}

/** Passes a verdict of the service on to the phone. Keeps only what the phone needs to recover. */
function relayed(answer, body, code, name) {
  const headers = {};
  const sent = answer.headers["x-synheart-server-time"];
  if (isText(sent, /^[0-9]{10}$/)) headers["X-Synheart-Server-Time"] = sent;
  const demand = answer.headers["x-synheart-assertion"];
  if (isText(demand, FIELD)) headers["X-Synheart-Assertion"] = demand;
  const seconds = retryAfter(answer);
  if (seconds !== undefined) headers["Retry-After"] = String(seconds);
  return refusal(answer.status, headers, {
    error: code, message: typeof body.message === "string" ? body.message.slice(0, 500) : "The request was refused.",
    request_id: typeof body.request_id === "string" ? body.request_id.slice(0, 128) : name,
    server_timestamp: Number.isSafeInteger(body.server_timestamp) ? body.server_timestamp : now(),
  });
}

function refused(status, code, message, name, headers = {}) {
  return refusal(status, headers, { error: code, message, request_id: name, server_timestamp: now() });
}

/** The answer if the service gave no verdict: the request does not pass. */
function unavailable(name, seconds = RETRY_AFTER) {
  return refused(503, "SERVICE_UNAVAILABLE", "The request cannot be verified now.", name, { "Retry-After": String(seconds) });
}

function refusal(status, headers, body) {
  const data = Buffer.from(JSON.stringify(body));
  return { refusal: { status, body: data, headers: {
    "Content-Type": "application/json", "Content-Length": String(data.length), "Cache-Control": "no-store",
    "X-Synheart-Error": body.error, ...headers } } };
}

function isText(value, form) {
  return typeof value === "string" && form.test(value);
}

function now() {
  return Math.floor(Date.now() / 1000);
}
