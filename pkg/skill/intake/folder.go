package intake

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

// packOf finds the pack's files, by their paths from its folder. folder is its name; "": the files are at the zip's top, and nobody has named it.
func packOf(contents map[string][]byte) (files map[string][]byte, folder string, err error) {
	if _, at := contents[pack.SkillFile]; at {
		return contents, "", nil
	}
	var folders []string
	paths := slices.Sorted(maps.Keys(contents))
	for _, name := range paths {
		if path.Base(name) == pack.SkillFile && strings.Count(name, "/") == 1 {
			folders = append(folders, path.Dir(name))
		}
	}
	switch len(folders) {
	case 0:
		return nil, "", noSkill(paths)
	case 1:
		files, err = inside(folders[0], contents, paths)
		return files, folders[0], err
	}
	return nil, "", fault.Invalid("the zip has several skill packs: %s, %s; upload each by itself", shown(folders[0]), shown(folders[1]))
}

// inside are the files of the folder, which must be all.
func inside(folder string, contents map[string][]byte, paths []string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range paths {
		within, is := strings.CutPrefix(name, folder+"/")
		if !is {
			return nil, fault.Invalid("%s is outside of the pack's folder %s; a zip has the folder only, or the files in it", shown(name), shown(folder))
		}
		files[within] = contents[name]
	}
	return files, nil
}

// noSkill says where SKILL.md should be, by what is there instead.
func noSkill(paths []string) error {
	for _, name := range paths {
		switch base := path.Base(name); {
		case base == pack.SkillFile:
			return fault.Invalid("%s is too deep in the zip: make it of the folder %s itself", shown(name), shown(path.Dir(name)))
		case strings.EqualFold(base, pack.SkillFile):
			return fault.Invalid("%s must be named %s, in upper case", shown(name), pack.SkillFile)
		}
	}
	return fault.Invalid("the zip has no %s: it must be in the folder at the zip's top, or at the top itself", pack.SkillFile)
}
