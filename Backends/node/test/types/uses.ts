// Compiled, but never run: checks that the declarations fit the use of the library.
import {
  identity, KeysUnavailable, middleware, TokenRefused, TokenVerifier, verification, verified, Verifier,
} from "@synheart/auth-backend";
import type { IncomingMessage, ServerResponse } from "node:http";

const verifier = new Verifier({ service: "https://auth.example.com", credential: "c", origin: "https://api.example.com" });

export function express(request: IncomingMessage, response: ServerResponse): void {
  middleware(verifier)(request, response, (error?: unknown) => {
    const device: string | undefined = identity(request)?.deviceID;
    response.end(error ? String(error) : `${device} ${verification(request)?.observed}`);
  });
}

export const fetchStyle: (request: Request, environment: { peer: string }) => Promise<Response> = verified(
  verifier, (_request, found, _environment: { peer: string }) => new Response(found.identity?.assurance.labels.join()),
  { peer: (_, environment) => environment.peer });

export async function token(text: string): Promise<string> {
  const tokens = new TokenVerifier({ issuer: "https://auth.example.com", audience: "com.example.app" });
  try {
    return (await tokens.verify(text)).deviceID;
  } catch (error) {
    return error instanceof TokenRefused || error instanceof KeysUnavailable ? error.message : "";
  }
}

// @ts-expect-error: the credential is missing.
new Verifier({ service: "https://auth.example.com", origin: "https://api.example.com" });
