// Marks calls that this user may not approve, or has approved and that wait for others (UI-20). The rule of a call can
// require several approvals, or certain roles in the workspace. The server renders the same card for all users.
import { canEdit, page } from "./session.js";

// The workspace roles that may approve a call, by the rule's `approvers`.
const APPROVERS = { admin: ["owner", "admin"], owner: ["owner"] };

/** Marks the calls in a node that wait for approvals. Called before the node is shown. */
export function markApprovals(root) {
  if (!canEdit) return;
  const present = JSON.parse(page.dataset.approvers ?? "{}"); // set by questions.js and by the share dialog
  for (const { dataset } of root.querySelectorAll("[data-approved]")) {
    const { approvers, approvals, approved } = dataset;
    const hasApproved = approved.split(" ").includes(page.dataset.viewerId);
    const may = !approvers || APPROVERS[approvers]?.includes(page.dataset.workspaceRole);
    if (hasApproved) dataset.mine = "yes";
    if (!may) dataset.may = "no";
    if (hasApproved || !may) dataset.waits = "others";
    const count = present[approvers];
    dataset.stuck = count === 0 ? "none" : count < approvals ? "few" : "no";
  }
}
