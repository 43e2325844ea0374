// The home page of guests, who can't create sessions: the list of sessions that are shared with them.
import * as search from "../dialogs/search.js";
import { listening, ring } from "../net/news.js";
import { offerAccount } from "../sidebar/account.js";
import * as rail from "../sidebar/session_list.js";
import * as shell from "../ui/shell.js";
import { localise } from "../ui/time.js";
import { connectCommon } from "./common.js";

connectCommon();
rail.connect(listening);
ring();
search.connect();
shell.connect();
offerAccount();
localise(document.getElementById("main"));
