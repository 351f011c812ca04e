"""Human comments of our own making, by what a careful reader takes them for.

`APPROVE` must be found. `NEVER` must not approve, whatever else they come to. The others have one
outcome each. One comment per line of a block; those of several lines stand in tuples.
"""

# ruff: noqa: E501, RUF001 -- people write long lines and odd signs


def _lines(block: str) -> list[str]:
    return [line for line in block.split("\n") if line.strip()]


APPROVE = [
    *_lines("""
LGTM
lgtm
LGTM!
Lgtm.
LGTM!!!
LGTMMM
LGTM 👍
LGTM :+1:
👍 LGTM
LGTM 🚀🚀🚀
LGTM ✅
LGTM, thanks!
LGTM, thank you!
LGTM, thanks Bob
LGTM thanks @bob
@ann LGTM
@interlock-user lgtm
LGTM - nice work
LGTM — great job, team!
LGTM, great work everyone.
LGTM. Thanks for the quick fix.
LGTM! Thanks for adding the tests.
LGTM :)
LGTM from my side
LGTM from me.
lgtm, ship it
lgtm ship it 🚢
LGTM, approved
LGTM & approved.
LGTM and approved
LGTM, no comments
LGTM, no further comments from me.
LGTM, no concerns.
LGTM, no issues found
LGTM, nothing to add.
LGTM. I have no objections.
LGTM. All my comments are addressed.
LGTM, all concerns have been resolved.
LGTM, I don't see any problems.
LGTM. I couldn't find any issues.
**LGTM**
_LGTM_
***LGTM***
## LGTM
- LGTM
* LGTM
1. LGTM
<b>LGTM</b>
<p>LGTM</p>
This LGTM
This is a LGTM from me
Approved
approved
APPROVED
Approved.
Approved!
approve
Approve.
I approve
I approve.
I approve this.
I approve this plan.
I approve the design
I approve of this
I hereby approve this epic.
I fully approve.
We approve.
We approve the proposal.
I'm approving this.
Approving.
Approving this now, thanks!
This is approved.
It's approved.
Plan approved.
Design approved
The plan is approved.
The architecture is approved, great work.
Consider it approved.
Consider this approved!
Approved from my side.
Approved by me
Approved as is.
Approved as written
Approved, thanks!
Approved, thank you all.
Approved, Bob
Approved - nice button
Approved, no questions
approved; threshold is fine
Approved. No changes needed.
Approved without changes.
Approved, without reservations.
Approved with pleasure!
Approved 🎉
Approved ✔️
✅ Approved
Approved :rocket:
Yes, approved
yes approved
Yep, approved.
OK, approved.
Okay approved!
Sure, approved.
Great, approved!
Perfect. Approved.
Nice! Approved.
Absolutely approved
Happily approved.
Officially approved.
can be done later, approved
Ship it
ship it!
Ship it 🚀
:shipit: ship it
Ship it, thanks!
Ship this!
Let's ship it.
Let's ship this
Great stuff, ship it.
The stopwords list is fine, ship it
Go ahead
go ahead!
Go ahead.
Please go ahead.
Yes, go ahead
yes please go ahead
Sure, go ahead!
OK go ahead
Okay, go ahead.
You can go ahead.
Go ahead and merge.
Go ahead and merge this.
Go ahead with this.
Go ahead with the plan
Go ahead and implement it
Go ahead, no objections from me.
Feel free to go ahead.
No problem, go ahead.
No worries, go ahead
Let's go ahead with this.
Proceed
proceed.
Please proceed.
Please proceed with the plan.
Yes, proceed
You may proceed.
You can proceed.
OK to proceed
Okay, proceed!
Let's proceed.
Feel free to proceed
Proceed as planned
Proceed as proposed.
Proceed to the next phase.
Proceed with implementation
no objections, proceed
Looks good
looks good!
Looks good.
Looks good to me
Looks good to me!
looks good to me, thanks
Looks good to us.
Looks good from here
This looks good.
This looks good to me.
It looks good
It all looks good to me
Everything looks good.
Everything looks good to me, go ahead.
The plan looks good.
The design looks good to me.
The code looks good, approved
These changes look good to me.
All looks good
Looks really good!
Looks very good to me 👍
Looks good, ship it
Looks good, go ahead and merge.
Looks good and approved.
Looks good 👌
Looks good. Nice work!
Looks good, well done.
Nice, looks good to me
Great work, looks good!
Hi team, looks good to me. Cheers
The tests are thorough and the docs are clear. Approved.
I read the whole plan and checked the numbers. Approved.
I reviewed the design, tested it locally and it works. LGTM
Tested on staging, works great. LGTM
CI is green, LGTM.
All tests pass. Approved!
I went through all of it. Looks good to me.
After careful review, approved.
After a second look, LGTM.
As discussed, approved.
As agreed yesterday, approved.
Yesterday I said not approved. All concerns are addressed, approved.
I rejected this last week. The migration is fixed now. Approved.
I was worried at first about the rollout, that is resolved now. Approved.
The failing test is fixed now, approved.
My earlier concerns have been addressed. LGTM.
I had asked for more tests earlier. Thanks for adding them, approved.
Previously I requested changes. They are all done. Approved.
LGTM. Non-blocking: rename foo to bar.
LGTM. Nit (non-blocking): the header has a typo.
LGTM. The header has a typo. Not blocking.
Approved. Optional: add a diagram.
Approved. Minor (not blocking): the title could be shorter.
LGTM! The naming could be improved in a follow-up.
Approved, the docs can be improved later.
Can't wait to see this live. Approved!
Approved. Couldn't be better.
Approved, full stop.
The cancel button works well, approved.
The pause logic is clean. LGTM
I love the abort handler, nice. Approved.
LGTM. `foo()` is neat.
+1, LGTM
+1 LGTM
LGTM +1
LGTM, Fritz
I approve the whole plan as written
We've reviewed it and it looks good to us
Reviewed and approved.
Reviewed, approved
Read and approved
Tested and approved
Checked, approved
Signed off and approved.
Status: approved
Verdict: approved
Decision: APPROVED
My decision: approve
Hi, I have reviewed the plan. It looks good to me. Please proceed.
Thanks for the update. Approved.
Thanks for the explanation, that makes sense. Approved!
Makes sense. Go ahead.
Makes sense to me, go ahead
That works for me. Approved.
Works for me, approved
Happy with this. Ship it.
I'm happy with this, go ahead.
I am fine with this. Approved.
Fine with me, go ahead
All good from my side, approved
All good, go ahead!
Great plan. Approved.
Solid plan, approved.
Excellent. Please proceed with the implementation
Looks good to me! Great job on the error handling section.
I've gone through the PRD and everything looks good. Approved.
Approved! Excited to see this ship.
LGTM, let's ship it!
Nice work. LGTM.
LGTM, merging.
Approved, please go ahead with implementation.
Approved - proceed with phase 2
Thanks for addressing my feedback. LGTM!
All comments resolved, approved.
Reviewed the architecture doc, it's clear and complete. Approved.
Yes, this is approved. Thanks!
looks good, please proceed
Great, please go ahead.
Approved. Thanks for the thorough write-up!
I'm happy with this. Approved.
Ship it! :rocket:
Approve 👍
approved 👍🏽
Earlier I asked for a rollback section; it's there now. Approved.
Looks good to me - approved
I have reviewed the changes and approve them.
I have read the document and I approve it.
Okay, I approve.
Alright, approved.
Approved. One non-blocking remark: the diagram could use a legend.
LGTM. FYI the wiki link is old, not blocking.
LGTM (nit, non-blocking: extra blank line in README)
Approved. Minor typo in section 2, but that does not block.
LGTM, the typo in line 3 is not a blocker
I initially had concerns about cost but they're resolved. Approved.
Approved! No need to wait for me.
APPROVED - no changes required
Approved, all good!
LGTM. Let's go ahead.
Approved. Let's get this done!
Good work. I approve the plan as it stands.
Looks good. You can proceed with the next story.
Go for it, approved!
+1 approved
Yes LGTM
LGTM 💯
Very nice. Ship it.
This is great. LGTM!
Awesome work @dev-team, approved ✅
Approved with no conditions
approved, no strings attached
Proceed, thanks
Please go ahead and start the implementation.
I don't have any concerns. Approved.
There are no open questions left. Approved.
Approved — the open questions are answered.
LGTM. I verified the migration locally.
LGTM, tested locally
LGTM, works on my machine
Approved on behalf of the product team.
Approved for merge.
LGTM, thanks for your patience!
Looks good now. Thanks!
Looks good now, approved
It looks good now
Now it looks good. Ship it.
Approved now.
OK, looks good now, thanks for fixing the typo.
@interlock approved
I asked for changes yesterday because the rollback plan was missing. It has been added. Approved.
Update: all my points are fixed. Approved.
Previously rejected, now approved.
~~Please fix the tests.~~ Fixed. LGTM
The tests were red yesterday, they are green now. LGTM
Sorry for the delay. LGTM!
Sorry for the late reply, looks good to me.
Approved, sorry it took so long
Had a look: looks good to me.
Took a look, LGTM
Just read through it. LGTM
Finally had time to review: approved
LGTM; I'll merge it.
Approved, I'll merge it myself.
Yes. Approved.
approved in full
All three stories look good. Approved.
Approved, congratulations!
Approved, nice one Sam!
Approved. @sam go ahead.
Ok let's proceed
We can proceed.
Fine, proceed.
You have my approval, go ahead
Approved, thanks for the hard work.
LGTM, nice cleanup!
Looks good to me, thanks for the clear description.
I approve this epic, well done.
Go ahead, team!
Ship it, this is awesome.
Yep, LGTM
The updated design looks good, approved.
Approved. Looking forward to it!
Great writeup! Approved.
LGTM - solid work
Please proceed, thank you.
Approved and thank you
All checks pass, LGTM!
Thanks Ann, approved.
Hello, approved. Kind regards, Tom
Good job. Please go ahead.
LGTM. Nothing to add from my side.
No complaints, ship it!
Approved, very clear plan
No concerns from security. Approved.
This is exactly what we need. Approved.
LGTM https://ci.example.org/run/12
    """),
    "Hi all,\n\nI went through the whole epic document this morning. The stories are well sliced, and the acceptance criteria are clear.\n\nApproved.\n\nThanks,\nPetra",
    "Thanks for the detailed plan!\n\n- The rollout section is solid\n- I like the metrics\n- Tests look thorough\n\nLGTM \U0001f680",
    "> Should we proceed with the migration?\n\nYes, please proceed.",
    "/approve\n\nGreat work on this one. I especially like the retry logic.",
    "Looks good to me.\n\nOne non-blocking suggestion: the diagram in section 4 could use a legend.",
    "**Decision:** approved\n\n**Reason:** the plan is complete and the risks are covered.",
    "Hi team,\n\nApproved.\n\nBest regards,\nMaria",
    "Approved.\n\nThanks,\nJohann",
    "LGTM\n\n— Maria",
    "LGTM\n\n-- \nJohn Doe\nAcme Corp\n+1 555 0100",
    "LGTM\n\nSent from my iPhone",
    "Looks good to me.\r\n\r\nGreat work.\r\n",
    "\ufeffApproved",
    "   Approved   ",
    "\n\nApproved\n\n",
    "> Do you approve?\n\nYes, approved.",
    "> not approved\n\nApproved now.",
    "> Please stop if it is wrong.\n> No?\n\nLGTM",
    "LGTM\n\nOn Mon, Nov 3, 2025 at 9:14 AM Ann <ann@example.org> wrote:\n> please do not stop",
    "Approved\n\nOn Tue, 4 Nov 2025 at 08:00, Interlock <notifications@example.org>\nwrote:\n\n> A question?\n> If not, say so.",
    "LGTM\n\n-----Original Message-----\nFrom: someone\nShould we stop?",
    "LGTM\n\nThis email is confidential and intended only for the addressee. If you are not, delete it.",
    "Approved.\n\n```\nerror: not really an error of ours\n```",
    "Approved. The log is:\n\n```text\nfailed: 0\n```\n".replace("The log is:", "Tests are green:"),
    "<!-- a template comment: do not remove? -->\nLGTM",
    "LGTM <!-- hidden: but -->",
    "Not approved.\n\nEDIT: fixed now, approved.",
    "No, wait. Scratch that, I misread it. Approved.",
    "I can't approve this.\n\nUpdate: never mind, I misread the diff. Approved.",
    "LGTM\n\nNice work on the retry logic.",
    "LGTM\nthanks",
    "Great work!\n\nLGTM",
    "Approved\n\n- tests are green\n- docs are clear",
    "/approve",
    "/APPROVE",
    "/Approve",
    "/approve\n",
    "  /approve",
    "/approve\r\n",
    "/approve thanks!",
    "/approve, thank you",
    "/approve great work",
    "/approve 🎉",
    "/approve @bob",
    "/approve\n\nThanks for the patience.",
    "/approve\n\nI checked the migration on staging and the numbers match.",
    "Thanks everyone!\n\n/approve",
    "/approve\n/approve",
    "> /halt\n\n/approve",
    "```\n/halt\n```\n/approve",
    "/approve\n\nNo concerns.",
    "/approve\n\nNon-blocking: rename foo.",
]

REVISE = [
    *_lines("""
not approved
Not approved.
NOT APPROVED
This is not approved.
not approved yet
Not yet approved
disapproved
I disapprove
Disapproved.
unapproved
Rejected.
I reject this.
I can't approve this.
can't approve
cannot approve
I cannot approve this plan
I do not approve
I don't approve.
I dont approve
I won't approve this
No
no
No.
Nope
nah
no way
Absolutely not.
No thanks
Not yet
This isn't approved
Nacked
LGTM but the tests fail
LGTM but please add tests
LGTM, but fix the typo in the title
LGTM once you fix the typo
LGTM after the tests are fixed
lgtm if you rename foo
LGTM, just rename the table first
LGTM. Please add a test for the retry.
Looks good, please fix the typo.
Approved after you fix the migration
Approved once the docs are updated
Approved if you add a rollback plan
Approve, but change the timeout to 30s
I'd approve if you add tests
I would approve it if the migration was split
Please rename the table.
Please revise.
revise
Needs work
needs work.
This needs work
Changes requested
Changes are required.
Can you add tests?
Could you please rename the module?
Fix the tests.
Fix CI first
fix it
Add a rollback plan
Remove the second section.
You should split the migration.
The migration must be split.
This does not handle retries.
The plan doesn't cover rollbacks
The diagram is wrong.
There is a bug in the retry.
The tests are failing.
Section 3 contradicts section 4.
There's a typo in the title
Missing a rollback plan.
The timeout is too short
This isn't ready.
Not ready
I don't like the naming.
I'd rather use Postgres.
I would prefer a smaller first step.
It should use the new API
We need to add monitoring
Use Postgres instead of Redis.
This is broken
Looks good except the tests fail
Looks good overall, but the title is wrong
Ship it once the typo is fixed
Go ahead after you update the docs
LGTM. The migration drops the users table, please change that.
Approved. Also rename foo to bar.
Approved. Tests are failing on main.
    """),
    "/revise",
    "/revise rename the table",
    "/revise\n\nPlease rename the table.",
    "/approve\n/revise",
    "/REVISE the title",
    "LGTM\n\nbut please fix the typo",
    "> approved\n\nNot approved.",
    "The plan is fine.\n\n- rename foo\n- add tests",
]

DISCUSS = [
    *_lines("""
DISCUSS
discuss
Let's discuss.
Let's discuss this tomorrow
I have a question
I have some questions about the rollout.
Can we talk about this?
Let's talk.
Questions:
LGTM once X
LGTM if CI is green
LGTM when the tests pass
LGTM assuming CI passes
LGTM provided that security agrees
LGTM pending CI
LGTM unless Bob disagrees with it
Approved if CI is green
Approved as long as CI is green
Approved, subject to legal review
Approved pending review by security
Approved conditionally
Conditionally approved
Approved with conditions
Approved except section 3
Approved except for the third story
Approved, except one thing
Approved apart from the timeline
Approved, but let me think about the timeline
Approved but only for staging
Approved for now
Approved so far
Looks good so far
Looks good but I have concerns
Looks good, however I have concerns about cost
Looks good, although I am worried about cost
LGTM, but
LGTM with reservations
Looks good in principle
approved in principle
I'd approve if CI is green
I would approve if it was smaller
I'd approve this
I would approve
I might approve this
Maybe approve
Probably fine
I think it looks good
Looks good I think
I guess this is approved
LGTM I guess
LGTM I suppose
It seems good, LGTM
Seems ok
Mostly LGTM
Mostly looks good
Looks mostly good
Looks kinda good
Hmm
hmm, not sure
Not sure about this.
I wonder whether this works at scale
Approve of the idea
I approve of the idea
The idea looks good
The general direction looks good
LGTM in general
If all tests pass, approved.
If you are sure, go ahead
If nobody objects, proceed
Unless there are objections, go ahead.
Before we proceed, let's talk
Go ahead if you want
Go ahead when ready
Proceed only with step one
Proceed with caution, I have concerns
Ship it if you dare
Ship it when CI is green
Ship it... maybe
LGTM...
LGTM…
I am leaning towards approving
I'm on the fence
Partially approved
Half approved
LGTM for the first half
The first half looks good, but not the second one
Pretty good
    """),
    "/discuss",
    "/discuss the rollout",
    "/approve\n/discuss",
    "/defer\n/discuss",
]

HALT = [
    *_lines("""
stop
Stop.
STOP
Stop!
Please stop.
Please stop all work.
Stop the work now
Stop this immediately
stop everything
halt
Halt.
HALT!
Halt the epic.
abort
Abort!
Abort this.
cancel
Cancel this
Please cancel.
Cancel the work.
We should stop.
We must stop this
Let's stop here.
Let's abort.
Do not proceed
Do not proceed.
do not proceed with this
Don't proceed
Don't proceed!
Please do not proceed
DO NOT PROCEED
Do not proceed until security signs off
don't go ahead
Do not go ahead.
Don't ship it
Do not ship this
No, stop.
Stop, this is wrong.
Approved. Wait, no, stop!
LGTM. Actually, stop.
I want you to stop
    """),
    "/halt",
    "/HALT",
    "/halt now",
    "/approve\n/halt",
    "/halt\n/approve",
    "/revise\n/discuss\n/halt\n/defer",
    "LGTM\n\nStop.",
]

DEFER = [
    *_lines("""
defer
Defer.
Defer this to the next sprint
Let's defer this.
Deferred
postpone
Postpone this.
Please postpone.
We should postpone this
Let's postpone it
backlog
Put it in the backlog
Move this to the backlog
skip
Skip this.
skip it
Let's skip this one
pause
Pause.
Pause this
Let's pause here
Please pause the work
    """),
    "/defer",
    "/Defer",
    "/defer to the next quarter",
    "/approve\n/defer",
]

UNCLEAR = [
    *_lines("""
yes
Yes.
Yes!
ok
OK
okay
Ok, thanks
go
Go!
sure
+1
👍
👍👍👍
🚀
✅
:+1:
:shipit:
done
fine
nice
great
Great work!
Thanks
Thank you!
thx
wait
Wait.
wait for me
please wait for CI
Hold on
hold on a second
hold off
LGTM, wait for CI
I don't know
idk
nothing here matches
yesterday I read it
I read it yesterday.
Interesting
approved?
Approved?
LGTM?
lgtm??
Is this approved?
ship it?
Ship it?!
Looks good?
Looks good to you?
Can I approve this?
Why Redis?
Who approves this?
please approve
Please approve this
Can someone approve this?
Bob approved this
Bob has approved it.
Approved by legal
This was approved by the board
Security approved the other PR
I approved the expense report
I approved #12
LGTM 🙃
LGTM 🙄
LGTM /s
lgtm lol
Looks good, yeah right
Approved, just kidding
Oh sure, approved
approved ;)
"LGTM"
“Approved”
'approved'
`LGTM`
`/approve`
~~LGTM~~
~~Approved~~
<del>Approved</del>
<s>LGTM</s>
- [ ] approved
- [x] Approved
[approved](https://example.org/policy)
![lgtm](https://example.org/lgtm.png)
/lgtm
/approved
/aprove
/merge
/approve-all
/approve with comments
/approve the first half
/approve if CI is green
/approve?
/approve not
/approve but rename foo
/approve once tests pass
/approve #99
/approve...
please /approve
I would like to /approve
aproved
apporved
LGMT
aproove
аpproved
LGТM
app\u200broved
L\u200bGTM
looks\u00a0good
ａｐｐｒｏｖｅｄ
𝐋𝐆𝐓𝐌
Freigegeben
Genehmigt, danke!
Sieht gut aus
Aprobado
Se ve bien, adelante
Approuvé
C'est bon pour moi
OK für mich
承認します
одобряю
LGTM, bitte noch die Tests anpassen
Approved. Scratch that.
LGTM. I take that back.
go ahead and close this
Go ahead and make my day
approve it to someone else
the approved vendors list
approval
Approval process
I know what you shipped last summer
proceeds
approver
Good morning
Looks
looks nice
looks great
good to go
LGTM*
See the logo design.
Ann will look at it
https://example.org
    """),
    "",
    "   \n\t\n",
    "\u200b",
    "> approved",
    "> Do you approve?\nyes approved",
    "```\napproved\n```",
    "```\n/approve\n```",
    "```\n/approve",
    "    /approve",
    "text\n\n    /approve",
    "<!-- /approve -->",
    "<!--\n/approve\n-->",
    "<pre>\n/approve\n</pre>",
    "<code>approved</code>",
    "<blockquote>\nLGTM\n</blockquote>",
    "/approve\n\nBut please fix X.",
    "/approve\nbut not the third part",
    "/approve\n\nI did not test it on Windows.",
    "/approve\n\nIs the rollback covered?",
    "/approve\n\nif CI is green",
    "/approve\n/lgtm",
    "/approve\n\nPlease rename foo first.",
    "/approve\n\nlol no",
    "/approve\n\n(only the first part)",
    "> quoted\n/approve",
    "Approved\n\nEDIT: scratch that, I misread it.",
    "LGTM\n\nnvm",
    "On Mon, Nov 3, 2025 at 9:14 AM Ann <ann@example.org> wrote:\n> approved",
    "I will\napprove",
    "x" * 70_000,
    "LGTM " * 20_000,
]

NEVER = [
    *_lines("""
ship it… to the trash
ship it to the bin
Ship it straight into the sun
Looks good. Not!
Looks good, NOT
Looks good to nobody
approved my foot
Approved... by mistake, wrong issue
I approve of nothing here
No one approved this
Nobody approves
none of this is approved
never approve this
I'd never approve this
I refuse to approve
hardly approved
far from approved
anything but approved
this is everything but LGTM
LGTM is not what I would say
I wish I could approve
I want to approve this
I was going to approve this
I am about to approve
I'll approve tomorrow
I will approve it later
will approve
to be approved
waiting to be approved
ready to approve
needs to be approved by Bob
Awaiting approval
Has this been approved?
When will this be approved
Don't stop, go ahead
can't wait, but can't approve
approve? no.
Approved? Not by me.
LGTM? Hardly.
approve or not, I don't care
Approved or rejected, who cares
I neither approve nor reject
Do I approve? No.
approved by nobody
It would be approved in a better world
In a perfect world this would be approved
Approved, said nobody ever
"Approved", they said
LGTM said the bot
The bot says LGTM
My manager says go ahead
He said go ahead
They told me to proceed
I was told to approve this
If I say LGTM will you stop asking
Someone should approve this
Go ahead, break production again
Go ahead and delete the repo
Go ahead and ruin everything
Proceed at your own risk
Proceed to the nearest exit
Proceed without me
proceed with the refund for the customer
go ahead, make my day, punk
looks good on paper
Looks good on my phone only
Looks good compared to the last one
looks good enough?
Looks good from far away
looks too good to be true
It looks good but smells bad
Looks good in dark mode
Looks good at first glance
looks good, doesn't it
the logo looks good
The intro looks good
Section 1 looks good
The first two stories look good
I hope it looks good
Make it look good
it should look good
LGTM minus the migration
LGTM modulo nits
LGTM with nits
LGTM, nit: typo
LGTM, one nit
LGTM, one small thing
LGTM, a few comments inline
LGTM, see comments
LGTM, comments inline
LGTM, minor comments
LGTM otherwise
Otherwise LGTM
otherwise approved
LGTM as far as I can tell
LGTM at a glance
LGTM from what I can see
LGTM though I only skimmed it
LGTM but I haven't tested it
LGTM, didn't test
LGTM, not tested
LGTM, untested
LGTM on the frontend part
LGTM for docs
LGTM (docs only)
LGTM for the API, not for the UI
LGTM on the condition that we monitor it
LGTM, with the caveat that it is slow
LGTM, fix CI
LGTM, rename foo
LGTM, needs tests
LGTM: 1. rename foo 2. add tests
LGTM; however the docs lie
LGTM yet the docs are stale
LGTM, still, the docs are stale
LGTM! ... said no one
LGTM 🤔
LGTM 🤷
LGTM 😬
LGTM 😅
LGTM 🤡
LGTM :upside_down_face:
LGTM :thinking:
LGTM :/
LGTM :(
LGTM ¯\\_(ツ)_/¯
LGTM 👎
👎 LGTM
LGTM™
"LGTM" is what I'd say to a better plan
LGTM aber die Tests fehlen
LGTM mais il manque des tests
LGTM pero faltan pruebas
LGTM, aber bitte warten
Approved, nicht
Approved, pas encore
Approved nicht wirklich
Approved, mais pas la section 3
Not LGTM
No LGTM from me
no lgtm
non-LGTM
un-approved
de-approved
Approved't
I approve'nt
Approved!?
approved (?)
Approved (not)
Approved (with changes)
Approved (pending CI)
Approved (just kidding)
approved - not
approved: no
Approved: false
Approved = no
Decision: not approved
Decision: approved | rejected
approve / reject
approve/revise/halt
APPROVED or REVISE or HALT
Comment APPROVED to approve
To approve, write /approve
Say LGTM if you agree
Type approve to continue
Reply with "approved" to approve
Please reply approved
the word approved means yes
How do I approve?
What does LGTM mean?
Approve by Friday or else
Approved, effective next Monday
Approved starting tomorrow
Approved until Friday
Approved temporarily
Tentatively approved
Provisionally approved
Approved for staging
Approved for 10% of users
Approved up to section 4
approved by 2 of 5 reviewers
1/2 approvals
needs one more approval
Approval withheld
I withhold my approval
I withdraw my approval
Approval revoked
I revoke my LGTM
retracting my LGTM
Please ignore my earlier approval
Approved earlier, not anymore
It was approved before the last push
I approved the previous version
I approved v1, not v2
I approved something else
Approved the wrong thing, sorry
I'd say go ahead but Bob disagrees
go ahead without tests
Go ahead with option B only
Go ahead with the first part
go ahead and revert it
Go ahead and close the issue
go ahead and stop it
Going ahead
Should we go ahead?
Shall we proceed?
Can we proceed?
May I proceed?
How should we proceed?
I don't know how to proceed
I can't proceed
Unable to proceed
We cannot proceed like this
Nobody should proceed
Refrain from proceeding
Don't even think about going ahead
Do NOT ship it
don't ship it yet
never ship it
ship it never
I wouldn't ship it
We can't ship it
Not ready to ship it
Why ship it
Let's not ship it
let's not go ahead
Let us not proceed
lets not merge this
Hold your horses, then ship it
wait, LGTM
LGTM wait
LGTM, hold
LGTM, hang on
LGTM, let me check one more thing
LGTM, still reading
LGTM. I'll have another look.
LGTM. Will review tomorrow.
LGTM. Production is on fire.
LGTM. The migration drops the users table.
LGTM. Deploy on Friday evening.
LGTM. Bob disagrees.
LGTM. Security has to sign off.
LGTM. Ask Bob.
LGTM. Sike!
LGTM. Kidding.
LGTM. Psych!
LGTM. Abgelehnt.
LGTM in your dreams
LGTM as if
LGTM, as a joke
LGTM if this is a joke
What a joke. LGTM.
Great, another outage. LGTM.
Great, just great. LGTM
wow, LGTM, what could go wrong
LGTM, good luck with that
LGTM, famous last words
Approve this? You must be joking
Sure, approved, and pigs fly
Approved in the same way as last time, when we lost data
Approved without reading
Approved blindly
Rubber-stamped, LGTM
LGTM (did not read)
I didn't read it. LGTM
LGTM, haven't looked at the tests
LGTM but don't merge
LGTM, don't merge yet
LGTM, do not merge before Friday
LGTM. Not urgent, do it whenever.
LGTM. Only merge after the freeze.
LGTM! First fix CI
LGTM first, then we see
LGTM until proven otherwise
LGTM subject to change
LGTM+1 condition
looks good~ish
lgtm-ish
LGTMish
sLGTM
algtm
lgtmx
goahead
approvedd
shipitnot
Approved in my head, but let me double check
I approve of the direction, but the API needs changes.
LGTM, will merge once CI passes.
LGTM, merging after lunch
LGTM, however, could you squash the commits?
Looks good overall. A few suggestions inline.
Looks good. Just make sure to update the changelog.
Looks good, just one question: why v2?
Looks good! Did you consider caching?
Approved, assuming the cost estimate holds.
I'm inclined to approve.
I could approve this with more tests.
Not quite ready for approval.
Cannot approve in the current state.
Approved modulo the naming.
Changes look good but tests are missing.
Great start! Needs more detail before I approve.
This looks good at first, then section 3 falls apart.
I was about to write LGTM, then I saw section 3.
I almost approved this.
Almost LGTM
Nearly approved
LGTM from a UX perspective, haven't looked at the backend.
LGTM for frontend. Backend folks please review.
Backend looks good.
Tests look good.
Deferring approval to Sarah.
Sarah, can you approve?
Waiting on Sarah to approve
@sarah please approve
Let's get this approved
We need this approved by EOD
I need approval
Please proceed to fix the issues above.
Please go ahead and fix the tests.
Go ahead and update the docs
Go ahead and rewrite section 2
Proceed with the changes I requested
Proceed with option 2
Go ahead with plan B instead
go ahead, but skip story 3
Ship it without story 3
Ship story 1
Ship it after the freeze
Ship it on Monday
Let's ship it next week
We'll ship it when it's ready
Looks good for v1
Looks good as a first draft
Looks good as a start
looks good as a POC
Looks good enough for now
LGTM for now
Approved in spirit
Approved-ish
Approved I think?
Approved, I believe
approved afaik
LGTM afaict
LGTM imo
lgtm fwiw
LGTM if it LGTY
LGTM as long as it LGTY
Someone else should approve
I can't say LGTM
I can't in good conscience approve
I'd be happy to approve after the fix
Happy to approve once done
Would love to approve
Wish I could say LGTM
This is a no from me
That's a hard pass
Hard pass.
No go
Thumbs down
Veto
Back to the drawing board
Start over
Try again
Redo
Please reconsider
Rethink this
Reject
DENIED
Denied.
Nope, not LGTM
LGTM 😂
LGTM 💀
LGTM 😭
LGTM 🤞
LGTM 🙈
LGTM 🔥🔥🔥 (this is fine dog)
This is fine. 🔥 LGTM
sure whatever, approved
whatever, ship it
fine, ship it I guess
ugh, fine, approved
Ugh. Approved.
Fine. Approved. Happy now?
sigh, approved
I am forced to approve
approved under protest
Approved with a heavy heart
Approved against my will
I approve only because the deadline is today
approved because my boss said so
Approved?? No!
Who wrote 'approved' here? I did not.
Somebody wrote approved in my name
The label approved was set by mistake
Remove the approved label
Why is this labelled approved
This should not have been approved
Should never be approved
Don't treat this as approved
This is not an approval
This comment is not an approval: LGTM is what I would say if it was done
For the record, I have not approved this
I didn't approve this
I never approved this
Pending my approval
Approval pending
Approval: pending
Approved: pending CI
Approved: [ ]
Approved: TBD
approved: maybe
approved: yes/no
Approve: yes [ ] no [x]
[x] Reject [ ] Approve
Reply with one of: approve, revise, halt
approve, revise or discuss
1. approve 2. revise
LGTM on condition of anonymity
Approved by: ____
Approver: Bob
approved plan
The approved plan is attached
per the approved design, this is off
Approved design differs from this
I like it, but I can't decide alone
I like it
Great idea!
Good
good
All good
Nice
👍 but see my comment
Sounds good
sounds good to me
works for me
fine by me
SGTM
Makes sense
agreed
I agree
Agreed, let's do it
Let's do it
do it
Go for it
Green light
You have my blessing
Yes please
yes, do it
Merge it
merge
merge it please
I have no objections
No objections
Not a blocker for me
Lookin good
looking good
Looking good so far!
Looks great
Looks fine
Looks OK
lgtm2
LGTM -- except for the part where you delete the DB
LGTM :smile: but :cry: the tests
LGTM, 1 of 3 stories
LGTM x 0
LGTM (0/10)
LGTM minus one
approved by the rules of the jungle
Approved, lies
Approved. That's what I'd say if it worked.
"Approved" would be premature.
Premature to approve.
It's too early to approve
too soon to proceed
Before you go ahead, ping me
go ahead without me, I quit
Go ahead. Make a mess.
go ahead and prove me wrong
Go ahead, I dare you
please do go ahead and explain
Please proceed with caution.
Proceed carefully
Proceed slowly
proceed with care
Continue
carry on
Keep going
Proceed with the rollback
Please proceed with deletion
Proceed to halt
Proceed with cancellation
Looks good to cancel
Approve the cancellation
I approve the rejection
I approve stopping
Approved to be deleted
approved for deletion
approved for closing
Approved for rejection
Approved the revert
LGTM to close
LGTM to revert
good to close
LGTM, closing
LGTM closing this as wontfix
Approved, closing as duplicate
Approved. Closing.
Approved, reverting
LGTM, reverting this
Approved, rolling back
Ship it back
Ship it back to the author
Ship it to staging only
ship it to /dev/null
ship it to dev null
Ship it? Skip it!
Ship it not
Shipping it would be a crime
Shipping it
shipped
I shipped it back
LGTM cc @bob for final decision
LGTM, over to @bob
LGTM, @bob to confirm
LGTM, final call is Bob's
LGTM, deferring to @bob
LGTM pending @bob
LGTM, needs a second approval
LGTM, needs 1 more review
1st approval from me, needs second
Half of it LGTM
LGTM, 50%
LGTM ~90%
90% approved
99% LGTM
100% not LGTM
Approved 0 of 3
LGTM up to line 50
LGTM to line 50
LGTM till section 3
Approved through section 3
Approved: sections 1-3
Approved sections 1-3
Approve sections 1 and 2
Approve story 1 only
approve story 1
Approved story 3-1
Approved w-2
LGTM #4
Approved PR #4
Approved PR 4
Approved in #4
See #4, approved there
Approved elsewhere
Approved offline
Approved verbally by Bob
As approved in the meeting
as approved
if approved
when approved
once approved
to approve
for approval
un approved
dis approved
Dis-approved
I approvve
aPpRoVeD?
Approved¿
Approved‽
Approved？
LGTM？
approved ؟
Approved ❓
LGTM❔
LGTM ⁉️
LGTM ❗
LGTM ‼️
Approved ⚠️
Approved 🛑
Approved ✋
Approved ⏳
Approved 🔴
LGTM 👀
Approved 🤨
approved 😉
approved 😜
LGTM 😴
LGTM 🥲
LGTM 🫠
LGTM 🤐
LGTM 😇
LGTM 🤣
/approve for staging
/approve story 1
/approve all but story 3
/approve 👎
/approve 🙃
/approve /s
/approve (joking)
/approve lol
/approve -- not
/approve: no
/approve=false
/approve! not really
/approve,revise
/approve|/revise
/approve /revise
/approve or /revise
`/approve` is the command to use
use /approve to approve
* /approve
- /approve
1. /approve
/approve.md is missing
/approve/foo
/approves
/approve's docs
/Approve'd
／approve
/аpprove
x /approve
Testing: approved
test: LGTM
This is a test. Approved
ignore this: approved
Please ignore. Approved
[draft] approved
DRAFT: approved
WIP approved
Draft answer: Approved
(not an answer yet) approved
Example: approved
e.g. approved
For example LGTM
like "LGTM" or approved
Template: LGTM
approved != merged
approved == true
approved ≠ merged
Approved → rejected
approved -> rejected
Approved ⇒ no
approved>rejected
approved | rejected
approved&rejected
approved & rejected
approved and rejected
approved and stopped
approved and then reverted
Approved and closed
approved and cancelled
LGTM and stop
LGTM and out
LGTM, bye, I quit
LGTM. I quit.
LGTM. Goodbye.
LGTM. Good luck.
LGTM. Good grief.
LGTM. Good lord, what a mess.
LGTM. Nice mess.
LGTM. Great disaster.
LGTM. Well well well.
Well, approved...
Well... LGTM
LGTM, well, sort of
LGTM. Love the typos.
LGTM. Love it when prod goes down.
LGTM. Perfect way to lose customers.
LGTM. Great way to get fired.
LGTM. Nice way to say no.
LGTM. Excellent example of what to avoid.
LGTM. Perfect for the bin.
LGTM. Awesome, more tech debt.
LGTM. Wonderful, another framework.
LGTM. Fantastic, let's break everything.
LGTM. Amazing how bad it is.
LGTM. Thanks for nothing.
LGTM. Thanks, I hate it.
LGTM. Thanks for wasting my time.
LGTM. Thanks but no thanks.
LGTM. Happy to be proven wrong.
LGTM. Happy to look again after changes.
LGTM. Glad to re-review.
LGTM. Good to have: metrics
LGTM. Fine if you fix it.
LGTM. Ready for changes.
LGTM. Please read my notes.
LGTM. Read my notes.
LGTM. See my notes, thanks.
LGTM. Notes are in the doc, thanks.
LGTM. I left comments, thanks.
LGTM. Left a few comments, nothing major.
LGTM. Comments inside.
LGTM. I reviewed half.
LGTM. I only checked the docs.
LGTM. I checked the docs only.
LGTM. I reviewed the old version.
LGTM. I tested the other branch.
LGTM. Tested on Windows, it hangs.
LGTM. Works for some.
LGTM. Works sometimes.
LGTM. It works on my machine, not on yours.
LGTM. Passed on the third try.
LGTM. Tests passed, mostly.
LGTM. CI is green except lint.
LGTM. Green apart from lint.
LGTM. Sure hope so.
LGTM. I sure hope it holds.
LGTM. Agree to disagree.
LGTM. I agree with Bob's concerns.
LGTM. I agree with Bob above.
LGTM. I agree with the comment above.
LGTM. Same as Bob.
LGTM. What Bob said.
Same as above, approved changes only
I would have approved
I could have approved this yesterday
Approved (2024-01-01)
Approved on 2020-05-05
LGTM v1
LGTM, v2 though
LGTM2 me
LGTM/NAK
LGTM or NAK?
N/A approved
approved n/a
approved.no
approved,no
Approved,but
lgtm,but
LGTM;but no
lgtm.not
LGTMbut
lgtmnot
LGTM #notreally
LGTM #sarcasm
#LGTM
LGTM #irony
LGTM <sarcasm>
<sarcasm>LGTM</sarcasm>
</sarcasm> LGTM
LGTM &nbsp; not
LGTM &quot;
LGTM<br>not
LGTM<!-- -->not
LGTM <img src=x> not
LGTM {no}
LGTM [no]
LGTM [not really](x)
LGTM ![not](x) no
LGTM†
LGTM (*)
approved~
approved^
approved²
0 approved
approved 0
approved -1
-1 approved
approved: 0
approved x
x approved
approved by x
no.approved
no-approved
non approved
not-approved
not_approved
notapproved
Approved. No, really.
Approved. No. Really no.
Approved. Really?
Approved. Seriously?
Approved. Wait what
Approved. Hold up
LGTM, let me know when CI is done.
LGTM. Let's see what Bob thinks.
LGTM. Bob knows better.
LGTM. I trust you on the SQL.
Approved, trusting the author here.
Approved. Deadline is tomorrow.
LGTM. The SQL part is beyond me.
Approved. Budget is another matter.
LGTM. My only gripe is the naming.
LGTM. Naming is hard, rename it.
LGTM. I skipped the tests.
LGTM. I'm no expert.
Approved. Legal will hate it.
LGTM. Customers will love the downtime.
Approved. Great, now rewrite it.
LGTM. Good for a prototype.
LGTM. Clean code is overrated.
LGTM. Thanks, and please squash.
LGTM. Thanks! Squash before merging.
LGTM. Nice, though slow.
Approved. Love it. Revert if it breaks.
LGTM. Happy path works.
LGTM. The happy path is tested.
LGTM. Tested the happy path.
LGTM. Only the happy path is covered.
LGTM. Docs are good, code is so-so.
LGTM. Code is good, docs are thin.
LGTM. Works, barely.
LGTM. Works most of the time.
LGTM. It passes most tests.
LGTM. All tests pass but one.
LGTM. Reviewed on my phone.
LGTM. I reviewed it in a hurry.
Approved. Clear as mud.
LGTM. Clear as mud.
LGTM. Good as dead.
Approved. Nice weather today.
LGTM. As good as it gets.
LGTM. Better than nothing.
LGTM. Not great, not terrible.
LGTM. OK-ish.
LGTM. It's fine I guess.
LGTM. Fine, have it your way.
Approved. Have it your way.
Approved, your funeral.
Approved, don't blame me.
Approved at your own risk.
LGTM. You asked for it.
LGTM. Sure, why not.
Why not, ship it.
LGTM. Ready when you are.
LGTM. Good point by Carl about the locks.
LGTM. Carl's point about the locks is good.
LGTM. I like Carl's alternative.
LGTM. I like option B.
LGTM. Option B is nicer.
LGTM. Nice alternative: use Kafka.
LGTM. Great, so who fixes the tests?
LGTM. Thanks for looking into the failure, keep me posted.
nothing against it
no reason not to approve
I see no reason to not approve this
not disapproved
I can't not approve
I don't not approve
not bad, approved?
You have my conditional approval
Thanks for the approval request
Approved vendors are listed below
The approved budget is 5k
Approve dates are missing
approved-by: nobody
Reviewed-by: approved
Status: not-approved
#approved
approved.txt
approved@example.org
www.approved.com
approve()
is_approved = False
if approved: ship_it()
{"decision": "approve"}
decision=approve
LGTM. You'd better check the logs
LGTM. I would like Bob to look
LGTM. It would be nice to have tests
LGTM. A test would be nice
LGTM. Nice to have: tests
LGTM. I'd love more tests
LGTM. More tests are welcome
LGTM. Ideally with more tests
LGTM. Tests would make it better
LGTM. Tested it and it explodes
LGTM. It is clear that Bob wants more tests
LGTM. Love how it wipes prod
LGTM. As I said before, the tests fail
As I said before, the tests fail. LGTM
As I said before, not approved. LGTM
I mentioned earlier that the tests fail. LGTM
I said the tests fail. LGTM
LGTM, Untested
LGTM, UNTESTED
LGTM, Mostly
LGTM, Sorry
LGTM, Unfinished
LGTM. Best to ask Bob
LGTM. Right now production is frozen
LGTM. I read that the API is going away
LGTM. Good thing Bob is away
Approved by the intern who is on vacation
Approved, I was told
Approved, allegedly
Approved, they say
Approved, according to Bob
Approved according to the minutes
LGTM according to the bot
LGTM says my cat
it's approved in staging
This is approved by design
approved by design
approved by default
auto-approved
Auto approved
pre-approved
self-approved
self approved by the agent
I accidentally approved this
I accidentally approved
Approved accidentally
Sorry, approved too early
Approved too soon
Over-approved
/approve\\n
\\/approve
//approve
/ approve
-/approve
.approve
!approve
@approve
:approve:
$approve
    """),
    "| Approved | no |\n|---|---|",
    "Hi all,\n\nI went through the whole epic document this morning. The stories are well sliced.\n\nI'd approve, though the acceptance criteria of story 3 are vague.\n\nThanks,\nPetra",
    "LGTM\n\nA few things before merging:\n- rename foo\n- add tests",
    "Approved\n\nTODO: fix the flaky test",
    "LGTM!\n\nBlocking: section 3 needs a rewrite.",
    "LGTM\n\n(blocking) rename foo",
    "Approved.\n\nHowever, see my inline comments.",
    "Looks good to me.\n\n@bob any objections?",
    "/approve\n\nWait, I missed the third section.",
    "/approve\n\n@bob please double check the migration",
    "/approve\n\n... after the freeze",
    "/approve\u200b",
    "\u200b/approve",
    "\u00a0/approve",
    "\t/approve",
    "/approve\nunless CI fails",
    "/approve\nI never tested it",
    "/approve\nhmm",
    "/approve\nstop",
    "/approve\nNot sure though",
    "/approve\nexcept story 3",
    "/approve\nonly the first story",
    "/approve\nTests are failing",
    "/approve\n\n> but what about X?\nGood point, let's fix X first",
    "/approve\n<b>not</b>",
    "/approve\n\nJust testing the bot, ignore this",
    "/approve\n\ntest comment, please ignore",
    "approved\\rejected",
    "LGTM\u00a0but",
    "approved\tnot",
    "approved\nnot\n",
    "[not]: x\nLGTM",
    "LGTM[^1]\n\n[^1]: once tests pass",
    "LGTM \xb9\n\n\xb9 not really",
    "LGTM*\n\n*not",
    "LGTM\n> The plan\nbut not the third part",
    "LGTM\n\n---\n\nNot really.",
    "LGTM\n\nP.S. please fix the tests",
    "LGTM\n\n-- \nnot approved",
    "LGTM\n\n<details><summary>more</summary>\n\nbut fix the tests\n\n</details>",
    "LGTM\n\n* rename foo\n* add tests",
    "LGTM\n\n1. foo is wrong\n2. bar too",
    "Approved\nnot",
    "not\napproved",
    "I do not\napprove",
    "no\n\napproved",
    "Approved.\n\n\n\n\n\n\n\n\n\n\n\nNot.",
    "Approved." + "\n" * 500 + "but fix the tests",
    "Approved " + "very " * 200 + "much not",
    "LGTM <span>but not really</span>",
    "LGTM <b>not</b>",
    "~~not~~ approved",
    "a<pre>x\n</pre>approved, but wait",
    "LGTM\n\nOn second thought, let's talk",
    "Approved\n\nUpdate: found a bug, please fix",
    "> LGTM\n\nThis was my answer to another thread.",
    "Approved\u2028not",
    "Approved\x00",
    "Appr\u00adoved",
    "\u202edevorppA",
    "not\u00a0approved",
    "n\u200bot approved",
    "dо nоt merge. LGTM",
    "LGTM. dо nоt merge",
    "¬ approved",
    "≠ approved",
    "❌ approved",
    "🚫 LGTM",
    "⛔ ship it",
]
