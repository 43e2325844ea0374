import{a as o,b as r}from"./session-shared-mentions.js";import"./session.js";export{r as fetchNames,o as findMentions};
