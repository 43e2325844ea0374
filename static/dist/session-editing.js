import{a as o,b as r,c as m,d as p,e as t}from"./session-shared-editing.js";import"./session.js";export{o as begin,t as connect,p as draw,r as end,m as show};
