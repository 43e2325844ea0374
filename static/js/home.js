// The home page.
import { keepFresh } from "./refresh.js";

keepFresh(document.getElementById("sessions"));
