// The types of Node that the library's declarations use. Debian does not have Node's own declarations.
declare module "node:http" {
  export interface IncomingMessage {
    readonly url?: string;
  }
  export interface ServerResponse {
    end(text?: string): void;
  }
}
