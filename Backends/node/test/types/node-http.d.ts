// What of Node's own types the library's declarations name: Debian does not have them.
declare module "node:http" {
  export interface IncomingMessage {
    readonly url?: string;
  }
  export interface ServerResponse {
    end(text?: string): void;
  }
}
