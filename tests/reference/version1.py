"""A model that the first version of the file format wrote, and what it answered."""

from __future__ import annotations

import base64

import pandas as pd

FILE = base64.b85decode(
    "P)h>@6aWAK2mk;8Apo1OOc${M007Sd000R9004AyWo0gEb8l`{QtfWrFbsSZ!M`(uq^Pg<QGz1SV#P7w$cE&!!-"
    "~H9D7ynTL9k@<cqC8!>~2eW#I1W#-"
    "5j@+x2>e4+NV3I?md+{Em^!Me>px<mHWB7F7xs%4N<4xJ91f5Zs#4kw+6i|KWi%QX%M^?LmI{-_6#Sb1#-"
    "skliJy0=9I_nzJs7=2ik&jfyf)w_N1UUWSk8F*lHpqp~W7I#lVDUxovJl^|`J~*$$!*f)Ca^XHcjZ8<E(83lO}~KurFx"
    "ZC~CaFq@rdi(|UfbY1e$>iX<Tio=vgxr3x8sUr{wnbE;Hi5Mn{$=AJA-#gFFcnb^w)=^_zW6nZwDEy*KkA@8f)WRZVN-"
    "5n~mgjmT@qHln2ApkfgqGrw%6NEf50-"
    "=)fruR<n)Cxq%kq)Z+Dbs|CA~4MHME8NpFG$Ym_^E+KZF*%#v<>$$;%%pP$Ltt6F2!b1|{95oE|bO0$|fSaT6nwXveLA"
    "nqs-$4~@XHb>0WbZAql^U;A{3O4}|H?H$z`zsKVrcJ&dfs@pWrYK+saTD(bJN{dzcdsQV)HK|AZb(zH8y?y-"
    "wP)h>@6aWAK2mk;8Apj0Ax)#s_006%S000UA003=oWMynFYIARHtyRmCqc{-"
    "!6$fX=p|^zhQ#u@k46@CPK!gzP>Fw~pZwj#6J%_#Qasf$ISy@$C;<Gr1*xOVb3U8AeQi{&)`p`OGl*P@(sS87Kpk)z5f"
    "E6!`0f$p@cq^LV!yI8Yb$>g&!srIPuB14YMceh+h?l%%CBw$lTwQOA!)NiU8(PF`798N&{$KF^fWoo?&r68i;`CXhkI?"
    "~bO4;*f{k(#m@PUmB(#fQvYm4K(e42Md;_TIdloaSM7N-#WtHIg&$(1S2?s(5Ef}i_grI0gN659B;-"
    "#Fz0V{vm$3VH3_&3QNuv-e0cwl0%9toQ&Kreue-"
    "o@YKA`c{<oj|BcF^sRU8_vHT*IEsWuyWh{^E*8mlgNpzi?a<ms{{fOKTNdxv;9b2*V#DoSe}WJnoZ%U5R>UWikpni_wi"
    "rPfILIM}vHs$+fw*z%e3tUc{cQWrf56SoDJ(h(^Z3l{+O@44>a(+Hjv0L=_shAleu??uXMfjS%1L25`fjMFc^pGTY_gZ"
    "gul^ZM(=tOiN>DEr?5X=TVnj7UzaGOc3-*jcfuQU2L^vCp>x0MCV-"
    "~O7Z~^EZw$Rz!WTttF<0ad_gX)uaLNgE4{U93O7zmj4_9sRteXI)aTAMKE^*P!mEdx(7F2?^9CbuPe&y#2`Lzq(6Eam^"
    "6&bFxCtwZq|_ed?5tF^JMU5p_vv$m&9P%fmxn-Fc3F7uwOq$WyHDJkJ>*;7Oq#<eig7{wSp=0Nk%J3GzMp8Q&@p&o6Qq"
    "50OyI#0`TX&k?b@%BcJi+>aPF$}ou9$jhY(Ra<73gF!N48?ahSGR6V*IW&u30Fkxim^&ku7GO$(Ief#xi;%}p@G;#yYh"
    "en+ior9o7{6I1)i$njKlx<8e~JtYzf^n$uyxtQKAHsF!bS4`|g+X-"
    "8F=^PUsP`e)~aLRqZt~LJOvh)ZCQoo)VlgrIaB;vTaXlW~5S#5Tog1PYH>lRz?tI5a{ZBTZcJ4L#z`E6<l7X9PPY-"
    "v&;D{Du~Xuix#07$v6tcNL6XcE3M1d5jA@avIt4gbfPpwGvO8(;JjO9Dfd(gNh`{MP$^@!b}sN{Uoq%_Xq69X7IP13%b"
    "D7foExEpF`+4?5^9%Ut*3O4uu=-nNq(rn*<(s+_7;LNz93hX-"
    "0m2cmTL#clvBZo&^Tm<KBlvG`GOI0j}8zhI#<;Q^EIxh2>PS6F%@D$zoatvOnaJ8#N|Krg|vIO(+;!c{qBNGGFQc(!C="
    "R+i!A=yMcYmIIX|wO<Nf{*P)h>@6aWAK00000App6(sqY5@000L9000UA003cfa$$LME^csoP)h>@6aWAK2mk;8Apk*J"
    "uN2+@000mH000UA004AhVr*q|E^csno9q|r8xYCJP{vTLo|0OeT%>NLpl*|9p{}E#o|a!!Qk0k%pI?-"
    "c3KDlq%qdO<iWg@j7Ni3C8ip1+nmP)#3giQ>XK|O-yn4IIzHV~d%aqAC?dPdHSo#0+ar-mTjp4$U_wE0zdb{6g>2v!VP"
    "7QzL&h4>394vL2OX|4&&tE=2rOI#HZ`*7%Kjr04`;x><d6&1|wx1yqyglI0Gkb0KgZj$L4%#c#Ngpor-EaTq*tN=ARk!"
    "VJCd^R}6nkUeHAm#|B&SFAuM;H?{#f?VUd!feE#Ia)_5e^z0|XQR000O8001EXaJd5pQ2+n{r~m)}3jhEBZ)Rq5Wpr~c"
    "Zg6><>=)`A5Xs0;#!#)El3JWxq;934Zj))DuA`uymS0p-"
    "l$aNvUzCyx5_e0?DNY577iT0EqyqUGraGEB3bhIp04@e7V1v>;P+9;=3qffBP)h*<6ay3h000O8001EXL0hjB-"
    "T(jq5CH%H3IG5A0000000000qyYc`004AhVr*q|E^csnP)h*<6ay3h000O8001EXaJd5pQ2+n{r~m)}3jhEB00000000"
    "00qyYv2003`hW^-"
    "k9b1rUhc~DCQ1^@s600IC40C4~S0Du7i0000`O928D0~7!N00;m803iUIuuK=R0RRBc0ssIB00000000000001_0RR91"
    "0CaL?WiD!SZ*EXa0Rj{Q6aWAK2mk;8Apj0Ax)#s_006%S000UA0000000000005)`*Z}|lZEs{{Y%XeZZ*EXa0Rj{Q6a"
    "WAK00000App6(sqY5@000L9000UA0000000000005)`&;<YhVRCX|d2=pqaC%Tn1qJ{B000930|2K00093700000"
)

FRAME = pd.DataFrame(
    {"colour": ["red", "red", "green"], "size": [2, 0, 0], "open": [False, True, False]}
)
POSTERIOR = [0.92299594, 0.83939935, 0.05349725]
LOG_LIKELIHOOD = [-3.24964831, -2.56491154, -3.15627955]
NEWICK = "(colour:0.4703607792285136,size:0.5257699046322123,open:1.0561942116416414)h0;"
