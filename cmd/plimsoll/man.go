package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes what a package of a distribution installs beside the program, from the tree of commands.
func manCommand(roots func() []*cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages and the shells' completions below a directory",
		Example: "  plimsoll man /usr/share",
		Args:    cobra.ExactArgs(1),
		Hidden:  true, // for those who make packages
		RunE: func(_ *cobra.Command, args []string) error {
			for _, root := range roots() {
				if err := errors.Join(writePages(root, args[0]), writeCompletions(root, args[0])); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// writePages writes a page for each command that people see.
func writePages(root *cobra.Command, share string) error {
	dir := filepath.Join(share, "man", "man1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	root.DisableAutoGenTag = true // the date of the machine is not what a page is about
	header := &doc.GenManHeader{Section: "1", Source: "plimsoll " + version, Manual: "Plimsoll"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	return nil
}

// writeCompletions writes them where the shells look for them.
func writeCompletions(root *cobra.Command, share string) error {
	name := root.Name()
	for file, write := range map[string]func(string) error{
		filepath.Join("bash-completion", "completions", name): func(f string) error {
			return root.GenBashCompletionFileV2(f, true)
		},
		filepath.Join("zsh", "site-functions", "_"+name): root.GenZshCompletionFile,
		filepath.Join("fish", "vendor_completions.d", name+".fish"): func(f string) error {
			return root.GenFishCompletionFile(f, true)
		},
	} {
		file = filepath.Join(share, file)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = write(file)
		}
		if err != nil {
			return fmt.Errorf("completions: %w", err)
		}
	}
	return nil
}
