// Makes HTTP requests to the service. Keeps connections open, has one deadline for each exchange, limits the length of answers,
// follows no redirects and uses no proxy.

import http from "node:http";
import https from "node:https";

/** The longest answer that is read, in bytes. The service's answers have a few hundred bytes. */
const ANSWER_LIMIT = 65_536;

export class Client {
  #options;
  #transport;
  #timeout;

  constructor(url, { timeout, insecureHTTP }) {
    const parts = parsed(url);
    const isPlain = parts?.protocol === "http:";
    if (!parts || !(isPlain || parts.protocol === "https:") || parts.username || parts.password) {
      throw new TypeError(`expected an origin such as https://auth.example.com, found ${JSON.stringify(url)}`);
    }
    if (isPlain && !insecureHTTP && !isLoopback(parts.hostname)) {
      throw new TypeError(`${JSON.stringify(url)} is plain http to another host: use https, or say insecureHTTP: true`);
    }
    if (!(timeout > 0)) throw new TypeError("timeout must be above 0 milliseconds");
    this.#timeout = timeout;
    this.#transport = isPlain ? http : https;
    this.#options = {
      host: parts.hostname.replace(/^\[|\]$/g, ""),
      port: parts.port || (isPlain ? 80 : 443),
      agent: new this.#transport.Agent({ keepAlive: true, maxSockets: 64 }),
    };
  }

  /**
   * One request and its answer: status, headers, and the body, null if it is longer than the limit.
   * Rejects if no whole answer came within the timeout.
   */
  exchange(method, path, headers, body) {
    return new Promise((resolve, reject) => {
      const failed = (error) => {
        // The service may have restarted: drop the other idle connections too.
        for (const socket of Object.values(this.#options.agent.freeSockets).flat()) socket.destroy();
        reject(error);
      };
      const request = this.#transport.request(
        { ...this.#options, method, path, headers, signal: AbortSignal.timeout(this.#timeout) }, (response) => {
          const parts = [];
          let size = 0;
          const answer = (found) => resolve({ status: response.statusCode, headers: response.headers, body: found });
          response.on("data", (part) => {
            parts.push(part);
            size += part.length;
            if (size > ANSWER_LIMIT) {
              answer(null);
              request.destroy();
            }
          });
          response.on("end", () => (response.complete ? answer(Buffer.concat(parts)) : failed(new Error("the answer was cut"))));
          response.on("error", failed);
        });
      request.on("error", failed);
      request.end(body);
    });
  }
}

/** The value of `Retry-After` in seconds, at most 300; undefined if the header is absent or not a number. */
export function retryAfter(answer) {
  const text = answer.headers["retry-after"];
  return /^[0-9]+$/.test(text ?? "") ? Math.min(Number(text), 300) : undefined;
}

export function parsed(url) {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

function isLoopback(host) {
  return host === "localhost" || host === "[::1]" || /^127(\.[0-9]{1,3}){3}$/.test(host);
}
