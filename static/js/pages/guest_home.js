// The home page of guests, who can't create sessions: the list of sessions that are shared with them.
import * as opener from "../dialogs/opener.js";
import { connectListSocket, isListSocketConnected } from "../net/socket.js";
import { addAccountCommands } from "../sidebar/account.js";
import * as sessionList from "../sidebar/session_list.js";
import * as renderedToasts from "../ui/rendered_toasts.js";
import * as shell from "../ui/shell.js";
import { localizeTimes } from "../ui/time.js";
import { connectCommon } from "./common.js";

connectCommon();
renderedToasts.connect();
opener.connect();
sessionList.connect(isListSocketConnected);
connectListSocket();
shell.connect();
addAccountCommands();
localizeTimes(document.getElementById("main"));
