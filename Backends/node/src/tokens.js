// Checks device tokens offline, by the service's published keys.

import { createPublicKey, verify } from "node:crypto";

import { Client, parsed } from "./client.js";
import { checked, isAssurance } from "./verifier.js";

const TOKEN_LIMIT = 8192;
const LIFE = 600;
// Seconds for which a key set is fresh: its max-age, limited to these bounds, or USUAL if it has none.
const [SHORTEST, USUAL, LONGEST] = [60, 300, 3600];
// Seconds for which an old key set stays valid while the service cannot be reached.
const STALE = 3600;
// Seconds between two attempts to read the keys: for an unknown kid, and after a failure.
const [UNKNOWN_PAUSE, FAILURE_PAUSE] = [60, 5];

/** The token is not one that this backend accepts: answer 401. The message is for the log. */
export class TokenRefused extends Error {
  name = "TokenRefused";
}

/** The published keys cannot be read now: answer 503. */
export class KeysUnavailable extends Error {
  name = "KeysUnavailable";
}

export class TokenVerifier {
  #options;
  #keys;

  constructor({
    issuer, audience, jwksURL, tokenType = "synheart-device+jwt", channels = ["production"], leeway = 5, timeout = 2000,
    insecureHTTP = false, log = console, clock = () => Date.now() / 1000, monotonic = () => performance.now() / 1000,
  }) {
    if (!issuer || !audience || !tokenType) throw new TypeError("issuer, audience and tokenType must not be empty");
    if (!(leeway >= 0 && leeway <= 60)) throw new TypeError("leeway must be 0 to 60 seconds");
    this.#options = { issuer, audience, tokenType, channels, leeway, clock };
    const url = jwksURL ?? `${issuer.replace(/\/+$/, "")}/auth/v1/.well-known/jwks.json`;
    this.#keys = new KeySet(url, new Client(url, { timeout, insecureHTTP }), monotonic, checked(log));
  }

  /** Checks the token that follows `Bearer` in the `Authorization` header. Throws TokenRefused or KeysUnavailable. */
  async verify(token) {
    if (token.length > TOKEN_LIMIT) throw new TokenRefused("longer than 8192 characters");
    const parts = token.split(".");
    if (parts.length !== 3) throw new TokenRefused("not three parts");
    const [header, claims] = parts.slice(0, 2).map((part) => object(base64url(part)));
    const signature = base64url(parts[2]);
    if (header.alg !== "ES256" || header.typ !== this.#options.tokenType || Object.hasOwn(header, "crit")) {
      throw new TokenRefused("another alg or typ");
    }
    if (typeof header.kid !== "string" || header.kid.length === 0 || header.kid.length > 128) throw new TokenRefused("no kid");
    const key = await this.#keys.key(header.kid);
    if (!key) throw new TokenRefused("an unknown kid");
    if (signature.length !== 64) throw new TokenRefused("a signature that has not 64 bytes");
    if (!verify("sha256", Buffer.from(`${parts[0]}.${parts[1]}`), { key, dsaEncoding: "ieee-p1363" }, signature)) {
      throw new TokenRefused("a wrong signature");
    }
    return this.#read(claims);
  }

  #read(claims) {
    const { issuer, audience, channels, leeway, clock } = this.#options;
    if (claims.iss !== issuer) throw new TokenRefused("another issuer");
    if (claims.aud !== audience) throw new TokenRefused("another audience");
    const { iat, exp } = claims;
    const life = exp - iat;
    if (!Number.isSafeInteger(iat) || !Number.isSafeInteger(exp) || !(life >= 0 && life <= LIFE)) {
      throw new TokenRefused("no life of at most 600 seconds");
    }
    if (!(iat <= clock() + leeway)) throw new TokenRefused("not valid yet");
    if (!(clock() < exp + leeway)) throw new TokenRefused("expired");
    const { sub, app_id: appID, channel, platform, jti, assurance, cnf } = claims;
    const hasTexts = [sub, appID, channel, platform, jti].every((text) => typeof text === "string" && text !== "");
    if (!hasTexts || !isAssurance(assurance) || cnf === null || typeof cnf?.jwk !== "object" || cnf.jwk === null) {
      throw new TokenRefused("a claim is missing");
    }
    if (!channels.includes(channel)) throw new TokenRefused("another channel");
    if (channel === "production" && ["development", "test"].includes(assurance.app)) {
      throw new TokenRefused("an assurance that production does not accept");
    }
    return { deviceID: sub, appID, audience, channel, platform, assurance, issuedAt: iat, expiresAt: exp, tokenID: jti,
      deviceKey: cnf.jwk };
  }
}

/** The published keys: kept for their max-age, read again for an unknown kid at most once a minute. */
class KeySet {
  #path;
  #client;
  #monotonic;
  #log;
  #keys = new Map();
  #readAt;
  #askedAt;
  #failed = false;
  #life = USUAL;
  #reading;

  constructor(url, client, monotonic, log) {
    const parts = parsed(url);
    this.#path = parts.pathname + parts.search;
    [this.#client, this.#monotonic, this.#log] = [client, monotonic, log];
  }

  async key(kid) {
    const now = this.#monotonic();
    const isOld = this.#readAt === undefined || now - this.#readAt >= this.#life;
    if (isOld || !this.#keys.has(kid)) {
      const pause = this.#failed ? FAILURE_PAUSE : isOld ? 0 : UNKNOWN_PAUSE;
      if (!this.#reading && (this.#askedAt === undefined || now - this.#askedAt >= pause)) {
        this.#reading = this.#read(now).finally(() => (this.#reading = undefined));
      }
      // All callers wait for one read, because a second one would fetch the same key set.
      await this.#reading;
    }
    if (this.#readAt === undefined || now - this.#readAt >= this.#life + STALE) {
      throw new KeysUnavailable("the auth service's keys could not be read");
    }
    return this.#keys.get(kid);
  }

  async #read(now) {
    this.#askedAt = now;
    this.#failed = true;
    let reason;
    try {
      const answer = await this.#client.exchange("GET", this.#path, { Accept: "application/json" });
      const keys = answer.status === 200 && answer.body ? keysOf(answer.body) : undefined;
      if (keys) {
        const age = /(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,])/.exec(answer.headers["cache-control"] ?? "");
        this.#life = age ? Math.min(Math.max(Number(age[1]), SHORTEST), LONGEST) : USUAL;
        [this.#keys, this.#readAt, this.#failed] = [keys, now, false];
        return;
      }
      reason = `status ${answer.status}`;
    } catch (error) {
      reason = error.code ?? error.name;
    }
    this.#log.warn(`synheart auth: the auth service's keys could not be read: ${reason}`);
  }
}

/** The public keys that verify tokens, by kid; undefined if the body is no valid set. Skips keys of other types. */
function keysOf(body) {
  try {
    const listed = JSON.parse(body.toString()).keys;
    if (!Array.isArray(listed)) return undefined;
    const keys = new Map();
    for (const { kty, crv, use = "sig", alg = "ES256", kid, x, y } of listed) {
      if (kty !== "EC" || crv !== "P-256" || use !== "sig" || alg !== "ES256") continue;
      if (typeof kid !== "string" || base64url(x).length !== 32 || base64url(y).length !== 32) return undefined;
      keys.set(kid, createPublicKey({ key: { kty, crv, x, y }, format: "jwk" }));
    }
    return keys;
  } catch {
    return undefined;
  }
}

/** Decodes base64url strictly: refuses padding, other characters, and text that differs from the encoder's output. */
function base64url(text) {
  const data = Buffer.from(text, "base64url");
  if (data.toString("base64url") !== text) throw new TokenRefused("no base64url");
  return data;
}

function object(data) {
  let value;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data));
  } catch {
    throw new TokenRefused("no JSON");
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TokenRefused("no JSON object");
  return value;
}
