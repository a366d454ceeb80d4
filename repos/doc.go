// Package repos fetches commits from Git servers, shows their trees as read-only file systems, and moves branches.
//
// Use it in two steps. Store.Resolve asks the server which commit a branch, a tag, the highest tag in a range of
// versions or another ref points at: one listing of refs, nothing is fetched. Store.Snapshot gives the tree of that commit, from disk when it is there, else after a
// fetch of that one commit. So a ref that did not move costs one request, and several users of one commit one fetch.
//
// # On disk
//
// Each remote has a folder of its own below the store's, named by a hash of its URL and its credentials: whoever does
// not have the credentials does not get at what was fetched with them. In it is a bare object store that
// git --git-dir can read, packs only, and for each complete commit a small file in commits/ that names the packs in
// which it is found. There is never a working tree: Snapshot.FS decodes files as they are read.
//
// From servers that have filters and give files by their ids, as GitHub, GitLab, Gitea and git http-backend can
// (uploadpack.allowFilter), a commit comes with all its folders and without files. Snapshot.Want says what is going to be
// read, and brings the configuration (.yaml, .yml, .json) below those folders in one conversation; a file that is read
// and is not here comes with the configuration beside and below it, any other file when it is read itself. The folders
// that were read lately are remembered, so that the next commit's files come together. What was read once is on disk and
// stays readable whatever becomes of the server. Where a file cannot be had by its id the whole commit is fetched, in the
// same call, and so are its successors for an hour. Whoever must not wait for a server in the middle of reading uses
// Snapshot.Read.
//
// A fetch asks for one commit by its id at depth 1, and tells the server of up to three commits that are here, so that
// only what is new comes over the wire. That is done with Git's protocol itself, on the packp package of go-git: its
// Remote.Fetch downloads everything anew for each commit at depth 1, and loses its way in shallow histories that were
// rewritten. There is no ref and no shallow file in the store that could become wrong: commits stand side by side.
// When a commit would be spread over more than 20 packs, what is here of it is written into one, or it is fetched anew
// where all its files are wanted; the old packs go once no commit needs them. Servers that hand out only what a ref points at (SSH servers without uploadpack.allowReachableSHA1InWant)
// are asked for the ref's history, at depth 50, 1000 and all, when the commit is no longer at the ref's end.
//
// Packs are checked object by object when they arrive and end to end when they are opened; they and the files in
// commits/ are written under other names and renamed. A store that is damaged nevertheless is emptied and filled anew
// without anybody being told, except Snapshots that are just being read. What the system cannot do at the moment, such as
// open one more file, is no damage: it is an error, and the store stays as it is. What the disk cannot read is fetched
// once more, to another place. On a full disk the stores of all remotes are rid of what nobody needs, and what was being
// fetched is fetched once more, before it is an error.
//
// test/bench/RESULTS.md has what it takes beside the git command (make bench-git).
//
// # Moving branches
//
// Store.Advance moves a branch on the server to a commit that the server has already, as a promotion does; no objects
// are made and none are sent but a pack of none, which the protocol asks for. It never forces: first Store.Relate must
// find the new commit ahead of the old one, and the old one goes with the push, so that the server compares and sets
// in one step and a human who was quicker wins. When a push fails, the server is asked where the branch is before
// anybody is told: a branch that did get there is success, one that went elsewhere is of KindMoved. Store.SetBranch
// leaves out the question of ancestry, for branches that nobody else writes to.
//
// The store has no history, so Relate asks for the commits that one commit has and the other has not, without trees
// and files where the server can leave those out, and reads them as they come in; nothing is written to disk. A
// question costs one conversation when the answer is Ahead or Behind, two when it is Diverged, and as many again on
// servers that give no commit by its id. Answers never change and are remembered.
//
// # Signatures
//
// Store.Verify tells who signed the commit of a revision, the annotated tag that it was found by, or both, by the keys
// that SignersFromSecret has read; package signature says what counts. A tag is brought by a conversation of its own that leaves
// out what is here, once, since a fetch of the commit does not bring it.
//
// # Submodules
//
// With Remote.RecurseSubmodules, a Snapshot shows the files of submodules in their places. A submodule is a commit that the tree names, of a repository that .gitmodules
// names. It is fetched, by the id that the tree has, when something in it is read; a url is taken where it leads to the same server alone, since it sees the same
// credentials. gitmodules(5) says what is in that file, of which path and url are read and nothing else. What a signature on the root's commit covers, it covers in
// submodules too: the tree is part of the commit, and has their ids.
//
// # Errors
//
// Everything is an *Error with a Kind for programs and a Hint for people; neither holds a secret. The same trouble has the
// same text at each try, so that it can be told from news: files that are being written are named by their folder, and our
// own end of a connection is not named. The file system wraps
// it in fs.PathError; KindOf and HintOf look through that. Each call has a deadline, Options.Timeout or the
// context's, whichever is earlier, that also ends a server's silence in the middle of a pack; shared work goes on for
// those who still wait.
//
// # Getting in
//
// AuthFromSecret reads the keys of a Secret and ProxyFromSecret those of a proxy's, both named as Flux names them. Whoever reads
// the Secret anew for each call, as package sync does, has a changed one in use at once. The tokens of a GitHub App are
// shared by all remotes of one Secret, bought by one request however many wait, again a little before they run out, and
// once when a server refuses one; by the server's clock, since ours may be wrong. Store.Token gives them to whoever
// asks the forge's API. docs.github.com, "Generating an installation access token for a GitHub App", has the rules.
//
// # Security
//
// Secrets go over TLS or SSH alone, and never to another host than the URL's. SSH needs known_hosts: a host that is
// not in it, or shows another key, is refused and both fingerprints are named. No configuration, agent, credential
// helper or program of the machine is used. What a server sends is bounded by Limits in bytes, objects and memory, and
// by the deadline in time.
//
// The rules followed are those of gitprotocol-pack(5), gitprotocol-http(5), gitformat-pack(5), git-check-ref-format(1)
// and, for known_hosts, sshd(8).
package repos
