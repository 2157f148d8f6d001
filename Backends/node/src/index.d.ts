import type { IncomingMessage, ServerResponse } from "node:http";

/** What was proven about app and key at registration. */
export interface Assurance {
  readonly app: string;
  readonly key: string;
  readonly labels: readonly string[];
}

/** The device that signed a request. */
export interface Identity {
  readonly appID: string;
  readonly deviceID: string;
  readonly platform: "ios" | "android";
  readonly assurance: Assurance;
  readonly signatureScheme: 1 | 2;
  readonly keyAgeSeconds: number;
}

/** A request that may pass. If only observe mode lets it pass, it has no `identity`, and `observed` is the code that would refuse it. */
export interface Verification {
  readonly identity: Identity | undefined;
  readonly observed: string | undefined;
}

/** The answer to a request that may not pass. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A request as the server received it. */
export interface Incoming {
  method: string;
  /** The path, with `?` and the query if there is one, as on the wire: not decoded. */
  target: string;
  /** Every header line, also of a repeated header. */
  headers: readonly (readonly [name: string, value: string])[];
  /** The raw bytes. */
  body: Uint8Array;
  /** The address of the other end of the connection; undefined for a UNIX socket. */
  peer?: string;
}

/** Where the library logs. The credential, signatures and bodies are never logged. */
export interface Log {
  warn(text: string): void;
  error(text: string): void;
}

export interface VerifierOptions {
  /** The service's origin, such as `https://auth.example.com`. */
  service: string;
  /** The service credential of this backend. */
  credential: string;
  /** The scheme and authority that clients send their requests to, such as `https://api.example.com`. */
  origin?: string;
  /** In place of `origin`: networks whose X-Forwarded-Proto and X-Forwarded-Host are believed. `unix` stands for UNIX sockets. */
  trustedProxies?: readonly string[];
  /** How many bytes a body may have; 1 MiB by default. */
  bodyLimit?: number;
  /** The time limit of each attempt, in milliseconds; 2000 by default. */
  timeout?: number;
  /** The most attempts to ask the service about one request; 3 by default. */
  attempts?: number;
  /** Allows plain http to a service that is not on loopback. */
  insecureHTTP?: boolean;
  log?: Log;
}

/** Asks one service about requests. Make one for each process and share it. */
export class Verifier {
  constructor(options: VerifierOptions);
  readonly bodyLimit: number;
  /** Judges a request. Call it once for each request: the service refuses a second call as a replay. */
  verify(request: Incoming): Promise<(Verification & { refusal?: undefined }) | { refusal: Refusal }>;
}

/** An Express-style handler. Mount it before every parser of bodies. */
export function middleware(
  verifier: Verifier,
): (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;

/** Wraps a fetch-style handler, which is called with the request and the result. */
export function verified<More extends unknown[]>(
  verifier: Verifier,
  handler: (request: Request, found: Verification, ...more: More) => Response | Promise<Response>,
  options?: {
    /** Returns the target as it came over the wire, if the server has it. The default is the target of the URL, which is normalized. */
    target?: (request: Request, ...more: More) => string;
    /** Returns the peer's address, for `trustedProxies`: "" for a UNIX socket, undefined if it is not known. */
    peer?: (request: Request, ...more: More) => string | undefined;
  },
): (request: Request, ...more: More) => Promise<Response>;

/** The result for a request; undefined for a request that no handler of this library judged. */
export function verification(request: object): Verification | undefined;

/** The device that signed the request; undefined for a request that passes only because its app is in observe mode. */
export function identity(request: object): Identity | undefined;

/** The content of a token. */
export interface DeviceToken {
  readonly deviceID: string;
  readonly appID: string;
  readonly audience: string;
  readonly channel: string;
  readonly platform: string;
  readonly assurance: Assurance;
  /** Unix times. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly tokenID: string;
  /** The device's public key as a JWK. */
  readonly deviceKey: Readonly<Record<string, string>>;
}

export interface TokenVerifierOptions {
  /** The expected `iss`: the service's public origin. */
  issuer: string;
  /** The audience of this backend. It must match exactly. */
  audience: string;
  /** Where the keys are; `<issuer>/auth/v1/.well-known/jwks.json` if it is not named. */
  jwksURL?: string;
  /** The expected `typ`: the app's `signature.token_type`. */
  tokenType?: string;
  /** The channels that are accepted; `production` alone by default. */
  channels?: readonly string[];
  /** How many seconds the clocks may differ: 5 by default, at most 60. */
  leeway?: number;
  timeout?: number;
  insecureHTTP?: boolean;
  log?: Log;
  /** The wall clock (Unix time) and a monotonic clock, both in seconds. For tests. */
  clock?: () => number;
  monotonic?: () => number;
}

/** Checks the tokens of one issuer. Make one for each process and share it. */
export class TokenVerifier {
  constructor(options: TokenVerifierOptions);
  /** Checks the token that follows `Bearer` in the `Authorization` header. Rejects with TokenRefused or KeysUnavailable. */
  verify(token: string): Promise<DeviceToken>;
}

/** The token is not one that this backend accepts: answer 401. */
export class TokenRefused extends Error {}

/** The published keys cannot be read now: answer 503. */
export class KeysUnavailable extends Error {}
