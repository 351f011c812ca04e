"""The words that hold work back: changes, faults, refusals, conditions, doubts.

Tables only, as patterns over small letters. Refuses to know how they are weighed. Every pattern
looks at a bounded piece, so reading stays linear.
"""

import re
from typing import Final

from interlock.epic.approval.comment_words import words

_VERBS: Final = (
    r"(?:fix|change|rename|add|remove|update|use|replace|rework|revise|rewrite|redo|drop|split"
    r"|move|delete|correct|address|clean (?:up|the|it|this)|include|document|handle|adjust|revert"
    r"|rebase|squash|reduce|increase|simplify|extract|refactor|extend|clarify|improve|restructure"
    r"|reorder|convert|switch|avoid|ensure|make sure|make (?:it|this|the|them)|put (?!this on hold"
    r"|it on hold)|set|test|cover|validate|check|double[ -]check|read (?:my|the (?:notes"
    r"|comments))|see (?:my|above|below|inline|comments)|look (?:at|into)|bump (?=\w)|pin|inline"
    r"|merge (?:the|these|both) (?!pr|branch|plan)|mention|define|specify|describe|reword|rephrase"
    r"|shorten|sort (?!of)|tweak|amend|reconsider|resolve|swap|wrap|guard|mock|limit|raise|lower"
    r"|lock|encrypt|redact|escape|sanitize|sign off on|get|ask|run|provide|attach|link|write"
    r"|finish|complete|undo|back out|turn|keep|leave|close|consider (?!it\b|this\b|that\b)|try"
    r"|do (?:it|this|that|x) )"
)
CHANGE: Final = words(
    r"needs? (?!(?:[a-z]+ ){0,3}approv)(?:some |more |a bit more |a little |further |another "
    r"|additional |to be |an? |much )*(?!no\b|to\b|talk|discuss)[a-z]+",
    r"needs? to (?!talk|discuss|think|wait|approve|be approved)[a-z]+",
    r"changes? (?:are |is )?(?:requested|required|needed|necessary)",
    r"request(?:ing)? (?:some |a few )?changes?",
    rf"(?:please|pls|plz|kindly) (?:also |just |then |first )?{_VERBS}",
    rf"(?:can|could|would|will) (?:you|we|someone) (?:please |pls |also |maybe |just )*{_VERBS}",
    r"(?:you|we|it|this|that|they|there) (?:should|must|have to|has to|ought to"
    r"|need to)(?! (?:be (?:good|fine|proud|able|approved)|ship|proceed|go ahead|merge|stop|halt"
    r"|abort|cancel|postpone|defer|pause|skip|wait|talk|discuss|hold|not\b))(?: also| really"
    r"| probably| not)? [a-z]+",
    r"(?:should|must|has to|have to|ought to) (?:also |really |probably |not )?(?:be (?!good|fine"
    r"|approved)[a-z]+|use|have|go (?!ahead)|say|read|return|handle)",
    r"(?:i'd|i would|we'd|we would|would) (?:rather|prefer|love|like (?:to see|you|us|it|this|the"
    r"|a|more)|love to see|want)[a-z ]{0,20}",
    r"(?:i|we) want (?:to see|you to (?!proceed|go ahead|ship)|a|the|more)",
    r"instead of",
    r"reviser?|revision needed|rework(?:ed)?",
    rf"(?:once|if|unless|after|until|when|provided|assuming|as soon as|as long as|before) (?:you"
    rf"|we|they|somebody|someone|it|this|that|the [a-z]+(?: [a-z]+)?) ?(?:'ve|have|has|is|are|was"
    rf"|were|gets?|been|can|could|would)* ?{_VERBS}(?:ed|d|ped|t|s|es|ting|ing)?",
    r"(?:once|if|unless|after|until|when|provided|assuming|as soon as|as long as|before|with"
    r"|pending|modulo) (?:the |a |an |some |those |these |my )?(?:[a-z]+ ){0,4}?(?:fix(?:ed|es)?"
    r"|renamed|added|removed|updated|replaced|rewritten|split|moved|deleted|corrected|addressed"
    r"|cleaned|documented|changed|changes|reworked|reverted|rebased|resolved|edits|tweaks"
    r"|corrections)",
)
"""A change that is asked for."""
IMPERATIVE: Final = re.compile(
    rf"(?:please |pls |plz |also |but |and |then |just |first |so |or |ok |okay |you |no |yes "
    rf"|nit |suggestion |minor |small |todo |maybe |let's |lets )*(?:{_VERBS})(?![\w'-])"
)
"""The same as a clause that begins with its verb."""
FAULT: Final = words(
    r"wrong(?:ly)?(?! (?:issue|tab|thread|window|pr|comment)\b)|broken|breaks?|breaking|fail(?:s"
    r"|ed|ing|ure|ures)?|bugs?|buggy|typos?|misspell\w*|(?<!i'm )(?<!i am )missing|lacks?|lacking"
    r"|incorrect(?:ly)?|incomplete|inconsistent|contradict\w*|outdated|obsolete|stale|insecure"
    r"|unsafe|unsound|crash(?:es|ed|ing)?|errors?|regress\w*|leaks?|leaking|leaked|vulnerab\w+"
    r"|flaky|red|slow|too (?:[a-z]+)|overkill|unacceptable|unclear|confusing|ambiguous|messy"
    r"|sloppy|ugly|bad|worse|worst|terrible|awful|horrible|poor|weak|ridiculous|nonsense|garbage"
    r"|trash|rubbish|bin|crap|mess|joke|disaster|nightmare|suspicious|risky|risk|wip(?:es?|ed|ing)"
    r"|destroy\w*|kill\w*|corrupt\w*|expos(?:es?|ed|ing)|outages?|downtime|incidents?|explod\w*"
    r"|burn\w*|panic\w*|frozen|on vacation|too (?:early|soon|late)|dangerous|danger|illegal"
    r"|(?<!by )mistakes?|flaws?|flawed|gaps?|forgot\w*|overlook\w*|violat\w*|mismatch\w*"
    r"|duplicat\w*|unused|dead code|hard-?coded|conflicts?|deadlock\w*|race condition"
    r"|not (?:good enough|ready|right|correct|acceptable|enough|working|covered|tested|clear"
    r"|complete|done|safe|secure|documented)|(?:isn't|aren't|wasn't) (?:good enough|ready|right"
    r"|correct|acceptable|enough|working|covered|tested|clear|complete|done|safe|secure"
    r"|documented)|(?:does not|doesn't|doesnt|don't|do not|won't|will not) (?:work|handle|cover"
    r"|compile|build|match|pass|scale|belong|address|fit|check|validate|include|contain|exist"
    r"|explain|mention|make sense|meet|follow|survive|support|respect)|(?:don't|do not|didn't"
    r"|did not) (?:like|love|agree|want|buy|trust)|dislike|hate|disagree|lies?|lying|ignores?"
    r"|loses?|lost|drops? (?:the|all|data)|deletes? (?:the|all|data|prod\w*)|needs? work|short of"
    r"|falls? short|at odds|off by one|out of date|out of sync|down|on fire|rejected by|denied"
)
"""Something that is said to be wrong."""
REFUSE: Final = words(
    r"disapprov\w*|unapprov\w*|reject(?:ed|ing|s)?|refus(?:e|ed|ing)|declin(?:e|ed|ing)"
    r"|veto(?:ed)?|nack|nak|non-?approv\w*|i object|oppos(?:e|es|ed|ing)|against (?:this|it|that"
    r"|approving|the plan)|no-go|no go|thumbs down|nacked|-1|👎|vote no|hard no|hell no|withheld"
    r"|withhold\w*|deny|denying"
)
PLAIN_NO: Final = re.compile(
    r"(?:no|nope|nah|nay|not yet|not now|no way|absolutely not|definitely not|certainly not"
    r"|of course not|hell no|no thanks?|no thank you|no sir|sorry no|i say no|my answer is no"
    r"|it's a no(?: from me)?|that's a no(?: from me)?|a no from me|hard no|no no|no from me|not"
    r"|never|not approved|not this time|-1)"
)
NEGATION: Final = words(
    r"no|not|never|none|nothing|nobody|nowhere|nor|neither|without|cannot|cant|dont|wont|isnt"
    r"|doesnt|didnt|arent|aint|wasnt|shouldnt|wouldnt|couldnt|havent|hasnt|hardly|barely|scarcely"
    r"|nope|nah|nay|un|far from|anything but|lack of|instead|refrain|fails? to|unable|impossible"
    r"|[a-z]+n't|nix"
)
APPROVAL_WORD: Final = words(
    r"approv(?:e|ed|es|ing|al|als)|lgtm|ship(?:ped|ping)?(?: it| this)?|shipit|go(?:ing)? ahead"
    r"|proceed(?:ing)?|looks? good|sign(?:ing)? off|green light|merge|merged|good to go"
)
CONDITION: Final = words(
    r"happy path|if|unless|once|until|till|when|whenever|after|before|provided|providing|assuming"
    r"|as long as|so long as|as soon as|subject to|pending|contingent|conditional(?:ly)?"
    r"|conditioned|depending|depends|dependent|given that|on condition|in case|only|first"
    r"|then (?:i|we|it)|with (?:the |these |those |some |a few |minor |small "
    r"|the following )*(?:changes?|comments?|edits?|fixes|modifications|tweaks|conditions?"
    r"|caveats?|corrections|reservations?|nits?|suggestions?|remarks?|exceptions?|notes?)"
    r"|would(?: have)? approv\w*|i'd approv\w*|would (?:be )?(?:lgtm|ship|proceed|go)"
    r"|could approv\w*|might approv\w*|should (?:we|i)|whether|supposing|suppose|in principle"
    r"|in theory|presumably|temporar\w+|tentative(?:ly)?|provisional\w*|preliminar\w+|partial\w*"
    r"|partly|in part|for now|for the moment|for the time being|so far|at least|as far as|up to"
    r"|half|most of|some of|part of|parts of|conditions?|requires?|required|by (?:monday|tuesday"
    r"|wednesday|thursday|friday|tomorrow)|from (?:monday|tomorrow)|starting|tomorrow|next week"
    r"|later|eventually|soon"
)
EXCEPTION: Final = words(
    r"but|however|although|though|tho|except(?:ing|ion|ions)?|apart from|aside from|other than"
    r"|otherwise|nevertheless|nonetheless|yet|still|despite|modulo|minus|caveats?|reservations?"
    r"|concern(?:s|ed|ing)?|worr(?:y|ied|ies)|one (?:thing|more thing|issue|problem|point|remark"
    r"|comment|change|nit|suggestion|minor|small|last thing)|(?:a few|a couple(?: of)?|some|two"
    r"|three|several|minor|small) (?:things?|issues?|problems?|points?|remarks?|comments?|changes?"
    r"|nits?|suggestions?|notes?|questions?|concerns?|tweaks?)|nits?|nitpicks?|suggestions?"
    r"|excluding|exclude|save for|barring|issues?|problems?|idea|concept|direction|approach"
    r"|in general|generally|in spirit|overall|basically|essentially"
)
FOREIGN: Final = words(
    r"das|der|die|den|ist|sieht|gut|ich|wir|und|nicht|noch|bitte|aber|jedoch|allerdings|wenn|falls"
    r"|sobald|außer|kein\w*|nein|ja|nur|ohne|mir|es|auch|schon|erst|danke|würde|le|la|les|est"
    r"|c'est|pas|peut|mais|sauf|si|je|nous|oui|jamais|merci|encore|quand|sans|cependant|el|está"
    r"|pero|aunque|nunca|gracias|porque|cuando|por|para|não|nao|mas|quando|sem|è|ma|ale|nie|jest"
    r"|poza|niet|maar|als|ikke|inte|men|jos|non|que|pour|avec|mit|auf|für"
)
"""Little words of other languages: what they say is not read."""
ENGLISH: Final = words(
    r"the|this|that|is|are|was|it|it's|i|we|you|they|to|of|and|or|not|please|be|have|has|do|don't"
    r"|can|will|for|with|but|if|my|your"
)
HEDGE: Final = words(
    r"for the most part|on the surface|soft|lgtm-ish|maybe|perhaps|probably|possibly|might|may be"
    r"|i think|i guess|i suppose|i believe|i assume|i feel|i reckon|i hope|hopefully|seems?"
    r"|seemingly|appears?|apparently|kinda|kind of|sort of|sorta|somewhat|mostly|almost|nearly"
    r"|largely|more or less|fairly|pretty (?:good|much|ok|okay)|not sure|unsure|uncertain"
    r"|not certain|not convinced|hmm+|hm|um+|uh|er|erm|i wonder|wondering|leaning|inclined|tempted"
    r"|should be (?:fine|good|ok|okay)|doubt\w*|skeptical|sceptical|on the fence|torn|undecided"
    r"|ish|lgtmish|guess so|not 100|whatever|meh|reluctant\w*|grudging\w*|against my better|fwiw"
    r"|imho|imo|at a glance|skimmed|quick look|haven't (?:read|looked|tested|tried|checked)"
    r"|didn't (?:read|look|test|try|check)|from what i (?:see|read|can see)|if i|trusting"
    r"|trust you|let me think|need to think|thinking about|not my area|no idea|rubber-?stamp\w*"
    r"|blindly|supposedly|theoretically|technically|somehow"
)
HEARSAY: Final = words(
    r"would|could|might|should|shall|ought|ideally|nice to have|better|accidental(?:ly)?|allegedly"
    r"|according to|was told|they say"
)
"""A wish, or what others are said to have said."""
DISCUSS: Final = words(
    r"discuss(?:ion|ions|ed|ing)?|questions?|talk(?:ing)?|let's (?:chat|meet|sync|call)"
    r"|can we (?:chat|meet|sync|call|jump)|chat about|jump on a call|hop on a call"
    r"|schedule a (?:call|meeting)|clarification|thoughts on|second opinion|need to think"
)
_NOUNS: Final = (
    r"(?! ?-|[ ](?:words?|buttons?|signs?|tokens?|conditions?|criteri\w+|lists?|loss|flags?|gap"
    r"|keys?|flow|orders?|endpoints?|links?|dialog|handlers?|signals?|controllers?|events?|logic"
    r"|codes?|icons?|menu|state|status|codon|time|period|feature|path|semantics|requests? (?:is"
    r"|are|look|work)|the world|by|worrying))"
)
_HALT: Final = r"(?:stop|halt|abort|cancel)(?:ped|ed|led|ing|ling|ping)?"
_DEFER: Final = (
    r"(?:defer(?! to (?!(?:the )?(?:next|following|later|q\d|january|february|march|april|may|june"
    r"|july)))(?:red|ring)?|postpon(?:e|ed|ing)|backlog(?:ged)?|skip(?:ped|ping)?|paus(?:e|ed|ing)"
    r"|shelve|shelved|park|parked)"
)
_LEAD: Final = (
    r"(?:please |pls |ok |okay |no |just |let's |lets |let us |and |so |then |but |kindly |we "
    r"|you |i |i'd |i'll |(?:should|must|need to|have to|has to|want to|wants? you to|would|will"
    r"|can|could|say|vote|rather|'d|think|be|to|get|going to|everyone|everybody|everything|all"
    r"|work|this|it|is|are|on|put|send|move|moved|in|into|the|for|my|our|now|better|prefer|propose"
    r"|suggest|asking|ask|team) )*"
)
HALT: Final = re.compile(rf"{_LEAD}(?<![\w-]){_HALT}(?![\w'-]){_NOUNS}")
DEFER: Final = re.compile(rf"{_LEAD}(?<![\w-]){_DEFER}(?![\w'-]){_NOUNS}")
DO_NOT: Final = words(
    r"(?:under no circumstances|do not|don't|dont|never|must not|mustn't|should not|shouldn't"
    r"|cannot|can't|can not|may not|not to|no one should|nobody should|please not|not) (?:(?:yet"
    r"|ever|even|just|please|want (?:you|us) to|let (?:it|this|them)|go ahead and|think (?:we"
    r"|you) should) )*(?:proceed(?:ing)?|continue|go ahead|go on|going ahead|ship(?:ping)?)"
)
WAIT: Final = words(
    r"wait(?:ing)?|hold on|hold off|hold|holding|hang on|stand by|standby|hold your horses|on hold"
    r"|one sec(?:ond)?|give me (?:a|some|until)|not so fast|bear with me|let me (?:check|look|read"
    r"|see|get back|review|think)|still (?:reading|reviewing|looking|checking)|will (?:review|look"
    r"|read|check|get back)|i'll (?:review|look|read|check|get back|approve)|reviewing"
    r"|looking into|blocked|blocking"
)
SARCASM: Final = re.compile(
    r"(?<![\w/])/s(?:arcasm|arc)?(?![\w/])|\bsarcasm|yeah,? right|yea,? right|sure,? jan|as if\b"
    r"|\bjust kidding|\bkidding\b|(?<!\w)j/?k(?!\w)|\bpsych\b|\bsike\b|in your dreams"
    r"|when pigs fly|over my dead body|nice try|april fools?|\blo+l\b|\blmf?ao\b|\brofl\b"
    r"|\bha(?:ha)+\b|\bxd\b|great,? just great|oh,? (?:sure|great|joy|wonderful|fantastic|good"
    r"|yes)\b|\bslow clap|what could (?:possibly )?go wrong|;-?\)|\byolo\b|\bsuuu+re|\bgreaa+t"
    r"|\bsooo+|famous last words|good luck with that|\bironic|:'?-?[(/\\|p](?!\w)|\bnot!"
)
TAKEN_BACK: Final = words(
    r"(?:i )?take (?:that|it|this) back|scratch (?:that|this|the above)|never ?mind|nvm|disregard"
    r"|retract(?:ed|ing)?|withdraw(?:n|ing)?|revok(?:e|ed|ing)|on second thoughts?|changed my mind"
    r"|ignore (?:that|this|the above|my (?:last|earlier|previous|above))|strike that|undo that"
    r"|i was wrong|mistaken|by mistake|wrong (?:issue|tab|thread|window|pr|comment)|correction"
    r"|oops|whoops|actually|edit|update|rescind(?:ed)?|was a (?:mistake|joke)"
)
