// The home page of users who start no sessions: the list of those that are shared with them.
import { offerAccount } from "./account.js";
import { listening, ring } from "./doorbell.js";
import * as rail from "./rail.js";
import * as search from "./search.js";
import * as shell from "./shell.js";
import "./shortcuts.js";
import { localise } from "./time.js";

rail.start(listening);
ring();
search.start();
shell.start();
offerAccount();
localise(document.getElementById("main"));
