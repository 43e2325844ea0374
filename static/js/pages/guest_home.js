// The home page of guests, who can't create sessions: the list of sessions that are shared with them.
import * as opener from "../dialogs/opener.js";
import { listening, ring } from "../net/socket.js";
import { offerAccount } from "../sidebar/account.js";
import * as rail from "../sidebar/session_list.js";
import * as shell from "../ui/shell.js";
import { localise } from "../ui/time.js";
import { connectCommon } from "./common.js";

connectCommon();
opener.connect();
rail.connect(listening);
ring();
shell.connect();
offerAccount();
localise(document.getElementById("main"));
