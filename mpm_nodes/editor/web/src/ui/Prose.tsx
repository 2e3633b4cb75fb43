/** A help text or a message: what stands between backticks is code. */
export function Prose({ text }: { text: string }) {
  return <>{text.split(/`([^`]+)`/).map((part, n) => (n % 2 ? <code key={n}>{part}</code> : part))}</>;
}

/** The same where only plain text can be. */
export const plain = (text: string): string => text.replace(/`([^`]+)`/g, "$1");
