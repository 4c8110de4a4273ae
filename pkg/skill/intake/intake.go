// Package intake reads the zip of a skill pack that somebody uploads, and says what is wrong with it.
//
// What it takes is in package pack: the folder, or the files of the folder, in a zip. Of what is wrong it tells the first that it finds, as a
// fault.ValidationError that names the file and, in SKILL.md, the line (from 1, the front matter's --- counts).
//
// Invariants:
//   - Nothing of the zip is believed: what counts is what was unpacked, and it is counted while it is. A pack takes no more memory than its limits say, and time
//     linear in its size.
//   - What Read gives is whole: it leaves out nothing but folders' own entries and what macOS adds (__MACOSX/, .DS_Store), and changes nothing but paths
//     to Unicode's NFC. A folder is the same pack with it at the top of the zip and without, from whatever tool, and Read of its own archive gives the same.
//   - No path of a pack leads out of it, and no two are one on a system that does not tell cases apart.
//   - Front matter is data: no anchors, aliases or tags, no key twice, no field that the form does not have. A value is its text, as in the reference library:
//     version: 1.0 is the text 1.0.
//   - Each relative link in the body of SKILL.md leads to a file or a folder of the pack. Code is not looked at.
package intake

import "github.com/agentplatform/agentplatform/pkg/skill/pack"

// Upload is a skill pack that was uploaded, and is as it must be.
type Upload struct {
	Pack    pack.Pack
	Archive []byte // to be stored; what pack.Open reads
}

// Read reads the zip of a skill pack.
func Read(upload []byte) (Upload, error) {
	members, err := list(upload)
	if err != nil {
		return Upload{}, err
	}
	unpacked, err := unpack(members)
	if err != nil {
		return Upload{}, err
	}
	contents, folder, err := packOf(unpacked)
	if err != nil {
		return Upload{}, err
	}
	p, err := readSkill(contents[pack.SkillFile], folder)
	if err != nil {
		return Upload{}, err
	}
	if err := checkLinks(contents); err != nil {
		return Upload{}, err
	}
	p.Files = pack.List(contents)
	p.Hash = pack.Hash(p.Files)
	archive, err := pack.Write(contents)
	return Upload{Pack: p, Archive: archive}, err
}
