import{a as o,b as r,c as m,d as p,e as t}from"./session-shared-editors.js";import"./session.js";export{t as connect,p as drawEditors,m as show,o as startEditing,r as stopEditing};
