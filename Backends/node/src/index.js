export { identity, middleware, verification, verified } from "./handlers.js";
export { KeysUnavailable, TokenRefused, TokenVerifier } from "./tokens.js";
export { Verifier } from "./verifier.js";
