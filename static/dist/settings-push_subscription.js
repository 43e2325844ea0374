import{a as o,b as r,c as m,d as p}from"./settings.js";export{p as renew,m as sendTest,r as turnOff,o as turnOn};
