package embedder

import "strings"

// common are words that nearly every text has, without case and accents: articles, pronouns, prepositions, conjunctions, auxiliary verbs and words
// that ask, as lists of stop words for full-text search have them. Words of one language that mean something in another are left out.
var common = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(english + german + french) {
		all[word] = true
	}
	return all
}()

const english = `
a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they them their theirs myself yourself
himself herself itself ourselves themselves one ones
am is are was were be been being have has had having do does did doing done can cannot could will would shall should may might must ought need
get gets got let
and or but if then else so than as because while although though until unless whether nor not no yes
at by for from in into of off on onto out over to toward towards up upon with within without about above across after again against along among
around before behind below beneath beside between beyond down during except inside near since through throughout under via per
what which who whom whose when where why how
all any both each either every few many more most much neither none other another some such own same several
here there now just only also too very really quite still ever never always often already yet soon once
s t d ll re ve m don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn
someone something anyone anything everyone everything nobody nothing please tell us
`

const german = `
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner
ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen sich mein meine dein deine sein seine unser unsere euer eure ihre ihren ihrem ihrer
bin bist ist sind seid war waren wird werden wurde wurden worden hat haben hatte hatten kann konnen konnte muss mussen musste soll sollen sollte darf
durfen will wollen wollte mochte mochten
und oder aber denn wenn weil dass ob als wie auch nicht nur noch schon sehr so doch ja nein
in im an am auf aus bei beim mit nach von vom vor zu zum zur uber unter zwischen durch fur gegen ohne um bis seit wegen wahrend
wer was wo wann warum wieso woher wohin welche welcher welches welchen welchem wem wen wessen worauf womit wozu wovon wieviel viel viele
dieser diese dieses diesen diesem jener jede jeder jedes jeden jedem alle allen man da dort hier dann deshalb immer
`

const french = `
le la les un une des du de au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs
je tu il elle on nous vous ils elles me te se lui y en moi toi soi qui que quoi dont ou quel quelle quels quelles
suis es est sommes etes sont etait etaient ete etre ai as avons avez ont avait avaient avoir fait faire faut peut peuvent doit doivent
et mais donc or ni car si comme quand lorsque puisque parce ne pas plus moins tres aussi bien encore toujours deja jamais
a dans par pour sur sous vers avec sans entre chez avant apres pendant depuis contre
l d j m n s t c qu jusqu lorsqu combien comment pourquoi tout toute tous toutes
`
