/** What a window is judged by. */
export interface Options {
  /** Requirements that must hold, such as "avoidable == 0"; `intact watch --require help` lists them. */
  require?: string | string[];
  /** The least severity of a finding that fails the window. */
  failOn?: "warning" | "error";
  /** What a failure calls the window. */
  name?: string;
}

/** No window can be opened, so nothing was judged. */
export class NotWatched extends Error {}

/**
 * Judges what the process, and processes that it starts, do until `block` has ended. Rejects with an AssertionError that has the
 * findings. A block that throws is not judged.
 */
export function expect<T>(requirements: string | string[] | Options, block: () => T | Promise<T>): Promise<T>;
